import { afterEach, describe, expect, it } from 'vitest'
import { governanceActionsRoute } from '../../api/routes/daos/governance/proposals/actions.ts'
import { votersRoute } from '../../api/routes/voters.ts'
import { logAt, timeAt, toGovernorChain } from '../support/governor-chain.ts'
import {
  AUTHOR,
  BRAVO,
  blockOf,
  GITCOIN,
  type GovernorPipeline,
  idOf,
  startGovernors,
  toQuery,
  voterOf,
} from '../support/governor-pipeline.ts'
import {
  encodeEvent,
  encodeOutcome,
  encodeProposal,
  encodeVote,
  encodeVoteWithParams,
} from '../upstream/governor-logs.ts'
import { ONE } from '../upstream/small-chain.ts'

const CREATED =
  'event ProposalCreated(uint256 id, address proposer, address[] targets, uint256[] values, string[] signatures, bytes[] calldatas, uint256 start, uint256 end, string description)'
const COMP = '0xc00e94cb662c3520282e6f5717214004a7f26888'
const amount = (1_000n * ONE).toString(16).padStart(64, '0')
const transfer = `0xa9059cbb${AUTHOR.slice(2).padStart(64, '0')}${amount}` as const
const targets = [COMP, BRAVO.address, AUTHOR]

const logs = [
  logAt(
    10,
    BRAVO.address,
    encodeEvent(CREATED, [
      ...[7n, AUTHOR, targets, [0n, 5n, 2n ** 70n], ['', '_setVotingDelay(uint256)', '']],
      ...[[transfer, `0x${'0'.repeat(63)}9`, '0x12345678'], blockOf(20), blockOf(300), '# Pay\n\nThe whole text.'],
    ]),
  ),
  logAt(30, BRAVO.address, encodeVote(voterOf(1), 7n, 1, 2n * ONE)),
  logAt(31, BRAVO.address, encodeVote(voterOf(2), 7n, 0, ONE)),
  logAt(320, BRAVO.address, encodeOutcome('ProposalQueued', 7n)),
  logAt(400, BRAVO.address, encodeOutcome('ProposalExecuted', 7n)),
  logAt(
    12,
    GITCOIN.address,
    encodeProposal({ id: 1n, proposer: AUTHOR, start: blockOf(20), end: blockOf(5_000), description: 'Long' }),
  ),
  logAt(
    40,
    GITCOIN.address,
    encodeVoteWithParams(voterOf(1), 1n, {
      support: 0,
      weight: 3n * ONE,
      params: `0x${[ONE, 2n * ONE, 0n].map((part) => part.toString(16).padStart(32, '0')).join('')}`,
    }),
  ),
]

let pipeline: GovernorPipeline
afterEach(() => pipeline?.close())

async function start() {
  pipeline = await startGovernors(1_000, toGovernorChain(logs))
  expect(await pipeline.collectGovernors()).toMatchObject({ rejected: 0 })
}

interface Proposal {
  _id: string
  dao: string
  title: string
}

describe('/data/daos/governance/proposals/actions', () => {
  it('lists decoded calls in order, with labels of known targets', async () => {
    await start()
    const [proposal] = await pipeline.get<Proposal[]>(`/proposals${toQuery('compound')}`)
    const actions = await pipeline.get<object[]>(`/proposals/actions?proposal=${proposal?._id}`)
    governanceActionsRoute.response.parse(actions)
    expect(actions).toMatchObject([
      {
        ...{ proposal: proposal?._id, index: 0, target: COMP, targetLabel: 'COMP token', valueWei: '0' },
        ...{ function: 'transfer', signature: 'transfer(address,uint256)', calldata: transfer },
        arguments: [
          { name: 'to', type: 'address', value: AUTHOR },
          { name: 'amount', type: 'uint256', value: String(1_000n * ONE) },
        ],
      },
      {
        ...{ index: 1, target: BRAVO.address, targetLabel: 'Governor of Compound', valueWei: '5' },
        ...{ function: '_setVotingDelay', arguments: [{ name: 'newVotingDelay', value: '9' }] },
      },
      {
        ...{ index: 2, targetLabel: null, valueWei: String(2n ** 70n), function: null, signature: null },
        ...{ arguments: null, calldata: '0x12345678' },
      },
    ])
    const csv = await fetch(
      `${pipeline.url}/data/daos/governance/proposals/actions?proposal=${proposal?._id}&format=csv`,
    )
    expect((await csv.text()).split('\n')).toHaveLength(5)
    expect(await pipeline.get(`/proposals/actions?proposal=${'0'.repeat(24)}`)).toEqual([])
  })
})

describe('/data/daos/governance/proposals', () => {
  it('has the times of a proposal with a source, and its text on request', async () => {
    await start()
    const [usual] = await pipeline.get<object[]>(`/proposals${toQuery('compound')}`)
    expect(usual).toMatchObject({
      ...{ queuedAt: timeAt(320), executableAt: '2023-11-14T22:13:20.000Z', executedAt: timeAt(400), canceledAt: null },
    })
    expect(usual).not.toHaveProperty('body')
    expect(await pipeline.get(`/proposals${toQuery('compound')}&include=body`)).toMatchObject([
      { title: 'Pay', body: '# Pay\n\nThe whole text.' },
    ])
  })

  it('lists proposals of all DAOs that end before a time', async () => {
    await start()
    const list = (query: string) => pipeline.get<Proposal[]>(`/proposals?source=governor&endsBefore=${query}`)
    expect((await list(timeAt(6_000))).map(({ dao }) => dao)).toEqual([idOf('gitcoin'), idOf('compound')])
    expect((await list(timeAt(400))).map(({ title }) => title)).toEqual(['Pay'])
    expect((await list(`${timeAt(6_000)}&state=active`)).map(({ title }) => title)).toEqual(['Long'])
    expect(await list(`${timeAt(6_000)}&id=${idOf('compound')}`)).toHaveLength(1)
    expect(await list(timeAt(300))).toEqual([])
    await pipeline.get('/proposals?source=governor', 400)
  })
})

describe('/data/daos/governance/votes', () => {
  it('has choices as text on request', async () => {
    await start()
    const texts = async (slug: string, more = '') => {
      const votes = await pipeline.get<{ choiceText: string }[]>(`/votes${toQuery(slug)}&include=choiceText${more}`)
      return votes.map(({ choiceText }) => choiceText)
    }
    expect(await texts('compound')).toEqual(['Against', 'For'])
    expect(await texts('compound', '&sort=votingPower')).toEqual(['Against', 'For'])
    expect(await texts('gitcoin')).toEqual(['For 2, Against 1'])
    const [usual] = await pipeline.get<object[]>(`/votes${toQuery('compound')}`)
    expect(usual).not.toHaveProperty('choiceText')
  })
})

describe('/data/voters', () => {
  it('lists the DAOs in which an address voted', async () => {
    await start()
    const get = async (address: string) => {
      const response = await fetch(`${pipeline.url}/data/voters?address=${address}`)
      return { status: response.status, records: await response.json() }
    }
    const { records } = await get(voterOf(1).toUpperCase().replace('0X', '0x'))
    votersRoute.response.parse(records)
    expect(records).toHaveLength(2)
    expect(records).toEqual(
      expect.arrayContaining([
        expect.objectContaining({
          dao: idOf('compound'),
          name: 'Compound',
          votes: 1,
          firstVoteAt: timeAt(30),
          lastVoteAt: timeAt(30),
          votingPower: 2,
        }),
        expect.objectContaining({ dao: idOf('gitcoin'), votes: 1, lastVoteAt: timeAt(40), votingPower: 3 }),
      ]),
    )
    expect(await get(voterOf(99))).toEqual({ status: 200, records: [] })
    expect((await get('vitalik')).status).toBe(400)
  })
})
