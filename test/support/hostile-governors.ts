import { encodeAbiParameters, keccak256, toFunctionSelector } from 'viem/utils'
import type { Governor } from '../../shared/registry/entities.ts'
import { encodeEvent } from '../upstream/governor-logs.ts'
import type { createRandom } from './random.ts'

type Random = ReturnType<typeof createRandom>
type Hex = `0x${string}`
type Encoded = ReturnType<typeof encodeEvent>
type Family = Governor['family']

/** A call as its author wrote it, and as the contract executes it. */
export interface HostileCall {
  readonly signature: Buffer
  readonly data: Hex
  readonly executed: Hex
}

export interface HostileVote {
  readonly voter: string
  readonly support: number
  readonly weight: bigint
  readonly params: Hex
}

const CALLS = 'address[] targets, uint256[] values, string[] signatures, bytes[] calldatas'
const PERIOD = 'uint256 start, uint256 end, string description'
const CREATED = `event ProposalCreated(uint256 id, address proposer, ${CALLS}, ${PERIOD})`
const VOTE = 'event VoteCast(address indexed voter, uint256 id, uint8 support, uint256 weight, string reason)'
const EMITTED = 'event VoteEmitted(uint256 id, address indexed voter, bool support, uint256 weight)'
const WITH_PARAMS =
  'event VoteCastWithParams(address indexed voter, uint256 id, uint8 support, uint256 weight, string reason, bytes params)'

/** The events of a family: the names of their members are the names of values. */
const EVENTS: Readonly<Record<Family, { readonly created: string; readonly votes: readonly string[] }>> = {
  alpha: { created: CREATED, votes: ['event VoteCast(address voter, uint256 id, bool support, uint256 weight)'] },
  bravo: { created: CREATED, votes: [VOTE] },
  openzeppelin: { created: CREATED, votes: [VOTE, WITH_PARAMS] },
  agora: {
    created: `event ProposalCreated(uint256 indexed id, address indexed proposer, ${CALLS}, ${PERIOD}, uint8 kind)`,
    votes: [VOTE, WITH_PARAMS],
  },
  nouns: { created: CREATED, votes: [VOTE] },
  venus: {
    created: `event ProposalCreated(uint256 id, address proposer, ${CALLS}, ${PERIOD}, uint8 kind)`,
    votes: [VOTE],
  },
  aragon: {
    created: 'event StartVote(uint256 indexed id, address indexed proposer, string description)',
    votes: ['event CastVote(uint256 indexed id, address indexed voter, bool support, uint256 weight)'],
  },
  'aave-v2': {
    created: `event ProposalCreated(uint256 id, address indexed proposer, address indexed executor, ${CALLS}, bool[] delegated, uint256 start, uint256 end, address strategy, bytes32 hash)`,
    votes: [EMITTED],
  },
  'aave-v3': {
    created: 'event ProposalCreated(uint256 indexed id, address indexed proposer, uint8 indexed level, bytes32 hash)',
    votes: [EMITTED.replace('uint256 id', 'uint256 indexed id').replace('bool support', 'bool indexed support')],
  },
  tornado: {
    created:
      'event ProposalCreated(uint256 indexed id, address indexed proposer, address target, uint256 start, uint256 end, string description)',
    votes: ['event Voted(uint256 indexed id, address indexed voter, bool indexed support, uint256 weight)'],
  },
}

/** Whether a new proposal of the family has calls or a text. */
export const hasCalls = (family: Family) => EVENTS[family].created.includes(CALLS)
export const hasText = (family: Family) => EVENTS[family].created.includes('string description')

/**
 * Encodes an event with values by the names of its members. Texts are bytes, so that they need not be UTF-8: both have
 * the same encoding, and only the first topic has the types.
 */
function encodeRaw(declaration: string, values: Readonly<Record<string, unknown>>): Encoded {
  const names = [...declaration.matchAll(/(\w+)[,)]/g)].map(([, name]) => name ?? '')
  const own = names.map((name) => values[name])
  const isText = (name: string) => name === 'signatures' || name === 'description'
  const texts = own.map((value, at) => (isText(names[at] ?? '') ? (Array.isArray(value) ? [] : '') : value))
  const { topics } = encodeEvent(declaration, texts)
  const raw = declaration
    .replace('string[] signatures', 'bytes[] signatures')
    .replace('string description', 'bytes description')
  return { topics, data: encodeEvent(raw, own).data }
}

const ADDRESS = `0x${'c'.repeat(40)}`
const toHex = (bytes: Buffer): Hex => `0x${bytes.toString('hex')}`

export const encodeHostileProposal = (
  family: Family,
  id: bigint,
  {
    description,
    calls,
    start = 10n,
    end = 20n,
  }: { description: Buffer; calls: readonly HostileCall[]; start?: bigint; end?: bigint },
): Encoded =>
  encodeRaw(EVENTS[family].created, {
    ...{ id, proposer: ADDRESS, executor: ADDRESS, target: ADDRESS, strategy: ADDRESS, kind: 1, level: 1, start, end },
    ...{ targets: calls.map(() => ADDRESS), values: calls.map(() => 0n), delegated: calls.map(() => false) },
    ...{ signatures: calls.map(({ signature }) => toHex(signature)), calldatas: calls.map(({ data }) => data) },
    ...{ description: toHex(description), hash: `0x${'1'.repeat(64)}` },
  })

export function encodeHostileVote(family: Family, id: bigint, vote: HostileVote): Encoded {
  const { votes } = EVENTS[family]
  const declaration = (vote.params === '0x' ? votes[0] : votes.at(-1)) ?? ''
  const support = declaration.includes('bool') ? vote.support % 2 === 1 : vote.support
  return encodeRaw(declaration, { id, ...vote, support, reason: '' })
}

const MOST_POWER = 2n ** 128n - 1n
const toParams = (parts: readonly bigint[]): Hex =>
  `0x${parts.map((part) => part.toString(16).padStart(32, '0')).join('')}`

export function createHostileVote(random: Random, voter: string): HostileVote {
  const { below, pick } = random
  const weight = pick([0n, 1n, 10n ** 18n, BigInt(below(1e9)) * 10n ** 17n + BigInt(below(1e9)), MOST_POWER])
  const part = () => pick([0n, weight / 3n, weight, weight + 1n, MOST_POWER])
  const bytes = toHex(Buffer.from(Array.from({ length: pick([1, 16, 47, 48, 49, 96]) }, () => below(256))))
  const params = pick<Hex>(['0x', '0x', toParams([part(), part(), part()]), toParams([0n, weight, 0n]), bytes])
  return { voter, support: pick([0, 1, 2, 3, 255]), weight, params }
}

const SIGNATURES = [
  ...['transfer(address,uint256)', 'approve(address,uint256)', 'multicall(bytes[])', 'setText(bytes32,string,string)'],
  ...['f(uint8,int16,bool,bytes4)', 'f((address,uint256[])[],bytes)', 'f(string[][2],uint256[3][])', 'pause()'],
  ...['many_msg_babbage(bytes1)', 'executeBatch(address[],uint256[],bytes[],bytes32,bytes32)'],
]
const MARKS = [
  ' ',
  '\u0000',
  '\ufeff',
  '()',
  'uint',
  ',',
  '(',
  ')',
  '[0]',
  '[]',
  '[999999999]',
  'é',
  '\n',
  '\t',
  'tuple',
  '_',
]

/** Returns the bytes of a signature: a canonical one, one with a change, or other bytes. */
function createSignature({ below, pick, chance }: Random): Buffer {
  const text = pick(SIGNATURES)
  if (chance(0.25)) return Buffer.alloc(0)
  if (chance(0.4)) return Buffer.from(text)
  if (chance(0.1)) return Buffer.from(Array.from({ length: below(60) }, () => below(256)))
  if (chance(0.1))
    return Buffer.from(`f(${'('.repeat(below(3000))}uint256${pick([')', '[]', '[2]']).repeat(below(3000))})`)
  const at = pick([0, below(text.length), text.length])
  const changed = `${text.slice(0, at)}${pick(MARKS)}${text.slice(at + below(3))}`
  return chance(0.1) ? Buffer.concat([Buffer.from([0xff]), Buffer.from(changed)]) : Buffer.from(changed)
}

const toWord = (value: bigint | number) => value.toString(16).padStart(64, '0')

/** Returns arguments as hexadecimal digits: words that are small numbers, pointers, huge or canonical. */
function createArguments({ below, pick, chance }: Random): string {
  if (chance(0.1)) {
    const pointers = 1 + below(200)
    const size = pick([0, 32, 3200])
    return [toWord(32), toWord(pointers), toWord(pointers * 32).repeat(pointers), toWord(size), 'ab'.repeat(size)].join(
      '',
    )
  }
  if (chance(0.2)) {
    const address = `0x${'d'.repeat(40)}`
    return encodeAbiParameters(
      [{ type: 'address' }, { type: 'uint256' }],
      [address as Hex, BigInt(below(1e9)) ** 3n],
    ).slice(2)
  }
  if (chance(0.2)) {
    const list = Array.from({ length: below(5) }, () => toHex(Buffer.alloc(below(70), below(256))))
    return encodeAbiParameters([{ type: 'bytes[]' }], [list]).slice(2)
  }
  const same = pick([0, 1, 32, 64])
  const words = Array.from({ length: below(60) }, () =>
    toWord(chance(0.5) ? same : pick([0, 1, 2, 32, 64, 96, below(2000), 2n ** 255n, 2n ** 256n - 1n, 2n ** 160n - 1n])),
  )
  return words.join('').slice(0, chance(0.1) ? 2 * below(200) : undefined)
}

export function createHostileCall(random: Random): HostileCall {
  const signature = createSignature(random)
  const own = createArguments(random)
  if (signature.length > 0) {
    const selector = keccak256(signature).slice(0, 10)
    // In some proposals the calldata begins with another selector, which the contract does not execute.
    const data = `${random.chance(0.2) ? 'a9059cbb' : ''}${own}`
    return { signature, data: `0x${data}`, executed: `${selector}${data}` as Hex }
  }
  const data: Hex = `${toFunctionSelector(random.pick(SIGNATURES))}${own}`
  return { signature, data, executed: data }
}

const TEXTS = [
  ...['# Raise', '\\n\\n', '\n', '\r\n', '<h1>Raise</h1>', '"', '{"title":"', '"}', '#', ' ', '**', '---\n', '![](x)'],
  ...['\ufeff', '\u0000', '\u202e', '\u200b', '𝔘', '&lt;', '<br>', 'title: x\n', 'The cap is raised.'],
]

/** Returns the bytes of a description; some are no UTF-8. */
export function createDescription({ below, pick, chance }: Random): Buffer {
  const parts = Array.from({ length: below(12) }, () => pick(TEXTS).repeat(chance(0.1) ? 500 : 1))
  return chance(0.1)
    ? Buffer.concat([Buffer.from(parts.join('')), Buffer.from([0xc0, 0x80])])
    : Buffer.from(parts.join(''))
}

/** Returns a log with one change: fewer or other bytes of data. */
export function spoil({ topics, data }: Encoded, { below, chance }: Random): Encoded {
  const bytes = Buffer.from(data.slice(2), 'hex')
  if (bytes.length > 0) bytes[below(bytes.length)] = below(256)
  return { topics, data: toHex(chance(0.3) ? bytes.subarray(0, below(bytes.length + 1)) : bytes) }
}
