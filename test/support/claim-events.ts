import { parseConfig } from '../../shared/config/config.ts'
import { HOUR_MS } from '../../shared/intervals.ts'
import type { Dao } from '../../shared/registry/entities.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { Job } from '../../workers/job/define-job.ts'
import delegations from '../../workers/jobs/delegations.ts'
import governors from '../../workers/jobs/governors.ts'
import type { Chain, ChainLog, NodeHabits } from '../upstream/chain.ts'
import { encodeAlphaVote, encodePower, encodeVote } from '../upstream/governor-logs.ts'
import { toRpcLog } from '../upstream/providers/rpc-logs.ts'
import { FIRST_BLOCK, START } from '../upstream/small-chain.ts'
import {
  CLAIM_DAYS,
  type ClaimClock,
  type ClaimSubject,
  type ClaimWorld,
  type Random,
  toCoveredBuckets,
  WANTED,
} from './claim-model.ts'
import { createClaimNode } from './claim-node.ts'
import type { ClaimTables } from './claim-tables.ts'
import { logAt, toGovernorChain } from './governor-chain.ts'
import { proposal, registry as shipped } from './governor-pipeline.ts'

const BLOCKS = (CLAIM_DAYS * 24 * 3600) / 12
const timeOf = ({ blockNumber }: ChainLog) => (START + (blockNumber - FIRST_BLOCK) * 12) * 1000

/** A log, with the contract that must be read to have it, and its identity among the stored events. */
interface ClaimedEvent {
  readonly log: ChainLog
  readonly dao: number
  /** The space of the readings that include it. */
  readonly space: string
  /** Undefined for a log without a stored event, such as a proposal. */
  readonly identity: string | undefined
}

const DAOS = ['uniswap', 'compound', 'ens'].map((slug) => {
  const dao = shipped.daoBySlug.get(slug)
  if (dao === undefined) throw new Error(`the registry has no ${slug}`)
  return dao
})

/** Changes of delegated power: every reading must have all changes until an hour before its time. */
export const delegationClaims: ClaimSubject = toSubject({
  job: delegations,
  table: 'delegations_in',
  identify: ({ kind, dao, tx }) => (kind === 'power' ? `${dao} ${tx}` : undefined),
  toEvents: ({ key, votingToken }, below) =>
    votingToken === null
      ? []
      : toBlocks(below).map((n, at) => {
          const log = logAt(n, votingToken.address, encodePower(toVoter(key, at), BigInt(at), BigInt(at + 1)))
          return { log, dao: key, space: votingToken.space, identity: `${key} ${log.transactionHash}` }
        }),
})

/** Votes on contracts: every reading must have all votes until an hour before its time. */
export const voteClaims: ClaimSubject = toSubject({
  job: governors,
  table: 'governors_in',
  identify: ({ kind, dao, address }) => (kind === 'vote' ? `${dao} ${address}` : undefined),
  toEvents: (dao, below) =>
    dao.governors
      .filter(({ chain }) => chain === 'ethereum')
      .flatMap((governor, place) => toVotes(dao, { governor, place }, below)),
})

/** Blocks after the first one, 10 to 160 minutes apart. */
function toBlocks(below: Random['below']): number[] {
  const blocks: number[] = []
  for (let n = 50 + below(700); n < BLOCKS; n += 50 + below(750)) blocks.push(n)
  return blocks
}

const toVoter = (dao: number, n: number) => `0x${(BigInt(dao) * 1_000_000n + BigInt(n)).toString(16).padStart(40, '0')}`

function toVotes(
  { key: dao }: Dao,
  { governor, place }: { readonly governor: Dao['governors'][number]; readonly place: number },
  below: Random['below'],
): ClaimedEvent[] {
  const { address, family, proposalSpace: space } = governor
  const logIndex = place
  const of = (n: number, event: Pick<ChainLog, 'topics' | 'data'>) => logAt(n, address, event, { logIndex })
  const first = { log: of(10, proposal(1n, [40, BLOCKS])), dao, space, identity: undefined }
  const votes = toBlocks(below).map((n, at) => {
    const voter = toVoter(dao, place * 10_000 + at)
    const event = family === 'alpha' ? encodeAlphaVote(voter, 1n, true, 5n) : encodeVote(voter, 1n, 1, 5n)
    return { log: of(n, event), dao, space, identity: `${dao} ${voter}` }
  })
  return [first, ...votes]
}

interface EventSubject {
  readonly job: Job
  readonly table: string
  /** The identity of a stored event; undefined for a row of another kind. */
  identify(row: Readonly<Record<string, unknown>>): string | undefined
  toEvents(dao: Dao, below: Random['below']): readonly ClaimedEvent[]
}

const READING = 'reading'

function toSubject({ job, table, identify, toEvents }: EventSubject): ClaimSubject {
  return {
    job,
    providers: ['node'],
    states: ['', 'cursors.', 'unfinished.', 'facts.', 'gaps.'],
    written: ['job_state', 'coverage_in', table],
    readsRanges: false,
    attempts: 40,
    eventsOf: {
      [table]: (row) => {
        const one = row as Readonly<Record<string, unknown>>
        const identity = one.kind === 'reading' ? `${READING} ${one.dao} ${one.space} ${one.at}` : identify(one)
        return identity === undefined ? [] : [identity]
      },
    },
    open: (random) =>
      openEvents(
        job,
        DAOS.flatMap((dao) => toEvents(dao, random.below)),
        random,
      ),
  }
}

function openEvents(job: Job, events: readonly ClaimedEvent[], random: Random): ClaimWorld {
  const checked = new Set<string>()
  const unreadable = new Set(events.filter(() => random.chance(0.02)).map(({ log }) => log))
  return {
    registries: [toRegistry(DAOS.slice(0, 1 + random.below(2))), toRegistry(DAOS)],
    openConfig: () =>
      parseConfig({
        RPC_URLS: 'ethereum=http://127.0.0.1:1/rpc',
        RPC_REQUESTS_PER_MINUTE: String(random.pick([20, 60, 6000])),
      }),
    openNetwork: (clock) =>
      createClaimNode(
        toChain(
          events.map(({ log }) => log),
          { unreadable, clock, random },
        ),
        clock,
      ),
    lags: { node: [0, 0, 20, 45, 130, 600], moralis: [] },
    check(tables, now) {
      const before = checked.size
      const wrong = [...findUntrueReadings(events, tables, checked), ...findUntrueDays(job, events, tables, now)]
      return { claims: checked.size - before, wrong }
    },
    toRemaining(tables, { daos }, now) {
      const slot = Math.floor(now / HOUR_MS) * HOUR_MS
      const isRead = new Set(
        toReadings(tables)
          .filter(({ at }) => at >= WANTED.to)
          .map(({ space }) => space),
      )
      const own = new Set(daos.map(({ key }) => key))
      const isLeft = events.some(({ dao, space }) => own.has(dao) && !isRead.has(space))
      return isLeft ? [{ kind: 'slot', slot }] : []
    },
  }
}

const toRegistry = (daos: readonly Dao[]) => ({ ...shipped, daos, tokens: [], version: 'model' }) as unknown as Registry

interface ReadingFound {
  readonly name: string
  readonly dao: number
  readonly space: string
  /** Unix milliseconds. */
  readonly at: number
}

function toReadings({ stored }: ClaimTables): ReadingFound[] {
  return [...stored].flatMap((name) => {
    const [kind, dao, space = '', at = ''] = name.split(' ')
    return kind === READING ? [{ name, dao: Number(dao), space, at: Date.parse(at) }] : []
  })
}

/** A node that lags by more than an hour makes no reading, so a reading has all events until an hour before it. */
function findUntrueReadings(events: readonly ClaimedEvent[], tables: ClaimTables, checked: Set<string>): string[] {
  return toReadings(tables).flatMap(({ name, dao, space, at }) => {
    if (checked.has(name)) return []
    checked.add(name)
    const lost = events.filter(
      (one) =>
        one.dao === dao &&
        one.space === space &&
        timeOf(one.log) <= at - HOUR_MS &&
        one.identity !== undefined &&
        !tables.stored.has(one.identity),
    )
    return lost.length === 0 ? [] : [`${name}: ${lost.length} events are not stored`]
  })
}

/** A covered day means that everything before it was read, too, because readings begin at the first event. */
function findUntrueDays({ dataset }: Job, events: readonly ClaimedEvent[], tables: ClaimTables, now: number): string[] {
  return [...tables.covered].flatMap(([dao, runs]) => {
    const newest = [...toCoveredBuckets(runs, dataset.cadence)].at(-1)
    if (newest === undefined) return []
    const lost = events.filter(
      (one) =>
        one.dao === dao &&
        timeOf(one.log) < newest.from &&
        one.identity !== undefined &&
        !tables.stored.has(one.identity),
    )
    const day = `DAO ${dao}, ${new Date(newest.from).toISOString()}`
    if (newest.from > now) return [`${day}: has not begun yet`]
    return lost.length === 0 ? [] : [`${day}: ${lost.length} events before it are not stored`]
  })
}

/** A chain whose node cannot decode some logs in their first 20 hours; unreadable for a day, a log is omitted. */
function toChain(
  logs: readonly ChainLog[],
  { unreadable, clock, random }: { readonly unreadable: ReadonlySet<ChainLog>; clock: ClaimClock; random: Random },
): Chain {
  const mostBlocks = random.pick([2_000, 10_000, undefined])
  const spoil: NodeHabits['spoil'] = (log) =>
    unreadable.has(log) && clock.now < Math.min(timeOf(log) + 20 * HOUR_MS, WANTED.to)
      ? { ...toRpcLog(log, { habits: {}, timeOf: () => timeOf(log) / 1000 }), data: '0x12' }
      : undefined
  const habits = { spoil, ...(mostBlocks === undefined ? {} : { mostBlocks }) }
  return toGovernorChain(logs, { habits })
}
