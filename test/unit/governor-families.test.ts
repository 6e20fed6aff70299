import { keccak256 } from 'viem/utils'
import { describe, expect, it } from 'vitest'
import { decodeAction } from '../../workers/providers/evm/governors/calldata.ts'
import { familyOf } from '../../workers/providers/evm/governors/families.ts'
import { encodeEvent } from '../upstream/governor-logs.ts'

const who = (digit: string) => `0x${digit.repeat(40)}`
const CALLS = 'address[] targets, uint256[] values, string[] signatures, bytes[] calldatas'
const PERIOD = 'uint256 start, uint256 end, string description'
const calls = [[who('c')], [5n], ['pause()'], ['0x']]
const period = [10n, 20n, '# Pause']
const module = [who('d'), '0x01']
const made = { kind: 'created', id: 7n, proposer: who('a'), period: { start: 10n, end: 20n }, description: '# Pause' }
const withCalls = { ...made, actions: [{ target: who('c'), value: 5n, signature: 'pause()', calldata: '0x' }] }
const withModule = { ...made, actions: [] }

describe('governor families', () => {
  it.each([
    ['agora', `uint256 id, address proposer, ${CALLS}, ${PERIOD}`, [...calls, ...period], withCalls],
    ['agora', `uint256 indexed id, address indexed proposer, ${CALLS}, ${PERIOD}`, [...calls, ...period], withCalls],
    [
      'agora',
      `uint256 id, address proposer, ${CALLS}, ${PERIOD}, uint8 proposalType`,
      [...calls, ...period, 1],
      withCalls,
    ],
    [
      'agora',
      `uint256 indexed id, address indexed proposer, ${CALLS}, ${PERIOD}, uint8 proposalType`,
      [...calls, ...period, 1],
      withCalls,
    ],
    [
      'agora',
      `uint256 id, address proposer, address votingModule, bytes proposalData, ${PERIOD}`,
      [...module, ...period],
      withModule,
    ],
    [
      'agora',
      `uint256 indexed id, address indexed proposer, address indexed votingModule, bytes proposalData, ${PERIOD}, uint8 proposalType`,
      [...module, ...period, 0],
      withModule,
    ],
    [
      'venus',
      `uint256 id, address proposer, ${CALLS}, ${PERIOD}, uint8 proposalType`,
      [...calls, ...period, 2],
      withCalls,
    ],
    ['nouns', `uint256 id, address proposer, ${CALLS}, ${PERIOD}`, [...calls, ...period], withCalls],
  ] as const)('decode a new proposal of %s: %s', (family, members, values, expected) => {
    const log = encodeEvent(`event ProposalCreated(${members})`, [7n, who('a'), ...values])
    expect(familyOf({ family }).decode(log)).toEqual(expected)
  })

  it.each([
    [
      'agora',
      'event ProposalDeadlineUpdated(uint256 id, uint64 deadline)',
      [7n, 30n],
      { kind: 'extended', id: 7n, end: 30n },
    ],
    [
      'nouns',
      'event ProposalObjectionPeriodSet(uint256 indexed id, uint256 end)',
      [7n, 30n],
      { kind: 'extended', id: 7n, end: 30n },
    ],
    ['nouns', 'event ProposalVetoed(uint256 id)', [7n], { kind: 'canceled', id: 7n }],
    [
      'nouns',
      'event ProposalDescriptionUpdated(uint256 indexed id, address indexed proposer, string description, string message)',
      [7n, who('a'), 'New', ''],
      { kind: 'updated', id: 7n, description: 'New' },
    ],
    [
      'aragon',
      'event StartVote(uint256 indexed id, address indexed creator, string metadata)',
      [7n, who('a'), 'Pause'],
      { kind: 'created', id: 7n, proposer: who('a'), period: 'immediate', description: 'Pause', actions: [] },
    ],
    [
      'aragon',
      'event StartVote(uint256 indexed id, address indexed creator, string metadata, uint256 a, uint256 b, uint256 c, uint256 d)',
      [7n, who('a'), 'Pause', 1n, 2n, 3n, 4n],
      { kind: 'created', id: 7n, proposer: who('a'), period: 'immediate', description: 'Pause', actions: [] },
    ],
    [
      'aragon',
      'event CastVote(uint256 indexed id, address indexed voter, bool support, uint256 weight)',
      [7n, who('a'), true, 9n],
      { kind: 'vote', id: 7n, voter: who('a'), support: 1, weight: 9n, params: '0x' },
    ],
    [
      'aave-v2',
      'event VoteEmitted(uint256 id, address indexed voter, bool support, uint256 weight)',
      [7n, who('a'), false, 9n],
      { kind: 'vote', id: 7n, voter: who('a'), support: 0, weight: 9n, params: '0x' },
    ],
    [
      'aave-v2',
      'event ProposalQueued(uint256 id, uint256 eta, address indexed by)',
      [7n, 1_700_000_000n, who('a')],
      { kind: 'queued', id: 7n, eta: 1_700_000_000n },
    ],
    ['aave-v2', 'event ProposalExecuted(uint256 id, address indexed by)', [7n, who('a')], { kind: 'executed', id: 7n }],
    [
      'aave-v3',
      'event ProposalCreated(uint256 indexed id, address indexed creator, uint8 indexed accessLevel, bytes32 hash)',
      [7n, who('a'), 1, `0x${'1'.repeat(64)}`],
      { kind: 'created', id: 7n, proposer: who('a'), period: 'later', description: '', actions: [] },
    ],
    [
      'aave-v3',
      'event ProposalVoteStarted(uint256 indexed id, bytes32 indexed hash, uint256 start, uint256 end)',
      [7n, `0x${'1'.repeat(64)}`, 1_700_000_000n, 1_700_259_200n],
      { kind: 'started', id: 7n, start: 1_700_000_000n, end: 1_700_259_200n },
    ],
    [
      'aave-v3',
      'event VoteEmitted(uint256 indexed id, address indexed voter, bool indexed support, uint256 weight)',
      [7n, who('a'), true, 9n],
      { kind: 'vote', id: 7n, voter: who('a'), support: 1, weight: 9n, params: '0x' },
    ],
    [
      'aave-v3',
      'event ProposalQueued(uint256 indexed id, uint128 votesFor, uint128 votesAgainst)',
      [7n, 9n, 0n],
      { kind: 'queued', id: 7n, eta: undefined },
    ],
    ['aave-v3', 'event ProposalExecuted(uint256 indexed id)', [7n], { kind: 'executed', id: 7n }],
    ['aave-v3', 'event ProposalCanceled(uint256 indexed id)', [7n], { kind: 'canceled', id: 7n }],
    [
      'tornado',
      'event ProposalCreated(uint256 indexed id, address indexed proposer, address target, uint256 start, uint256 end, string description)',
      [7n, who('a'), who('c'), ...period],
      { ...made, actions: [{ target: who('c'), value: 0n, signature: 'executeProposal()', calldata: '0x' }] },
    ],
    // The voting machine has the vote as well.
    [
      'aave-v3',
      'event VoteForwarded(uint256 indexed id, address indexed voter, bool indexed support, (address asset, uint128 slot)[] assets)',
      [7n, who('a'), true, []],
      undefined,
    ],
    [
      'aave-v3',
      'event ProposalFailed(uint256 indexed id, uint128 votesFor, uint128 votesAgainst)',
      [7n, 1n, 9n],
      undefined,
    ],
  ] as const)('decode of %s: %s', (family, declaration, values, expected) => {
    expect(familyOf({ family }).decode(encodeEvent(declaration, values))).toEqual(expected)
  })

  it('recognize a truncated log of each form of an event', () => {
    const { faultOf, decode } = familyOf({ family: 'agora' })
    const members = `address[] targets, uint256[] values, string[] signatures, bytes[] calldatas, ${PERIOD}`
    for (const indexed of ['', ' indexed']) {
      const declaration = `event ProposalCreated(uint256${indexed} id, address${indexed} proposer, ${members})`
      const { topics, data } = encodeEvent(declaration, [7n, who('a'), ...calls, ...period])
      const cut = { topics, data: data.slice(0, 130) }
      expect([decode(cut), faultOf(cut)]).toEqual([undefined, 'the data of ProposalCreated is cut or does not fit'])
    }
  })

  it.each([
    ['a byte order mark', 'efbbbf', '\ufeff'],
    ['a leading zero byte', '00', '\u0000'],
    ['a byte that is no UTF-8', 'ff', '\ufffd'],
  ])('keep the bytes of a signature: %s', (_, hex, character) => {
    const bytes = `0x${hex}${Buffer.from('transfer(address,uint256)').toString('hex')}` as const
    // Texts and bytes have the same encoding, and only the first topic has the types.
    const declared =
      'uint256 id, address proposer, address[] targets, uint256[] values, bytes[] signatures, bytes[] calldatas'
    const { data } = encodeEvent(`event ProposalCreated(${declared}, ${PERIOD})`, [
      ...[7n, who('a'), [who('c')], [0n], [bytes], ['0x01'], ...period],
    ])
    for (const family of ['alpha', 'bravo', 'openzeppelin', 'agora', 'nouns'] as const) {
      const [topic = ''] = encodeEvent(`event ProposalCreated(uint256 id, address proposer, ${CALLS}, ${PERIOD})`, [
        ...[7n, who('a'), ...calls, ...period],
      ]).topics
      const event = familyOf({ family }).decode({ topics: [topic], data })
      const [action] = event?.kind === 'created' ? event.actions : []
      if (action === undefined) throw new Error('no action')
      expect(action.signature).toBe(`${character}transfer(address,uint256)`)
      expect(decodeAction(action)).toMatchObject({
        ...{ function: null, signature: action.signature, calldata: `${keccak256(bytes).slice(0, 10)}01` },
      })
    }
  })
})
