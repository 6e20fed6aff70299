import { z } from 'zod'
import type { GovernorsRow } from '../../../../shared/datasets/governors.ts'
import { groupBy } from '../../../../shared/group-by.ts'
import { DAY_MS } from '../../../../shared/intervals.ts'
import { type Candidate, OMITTED } from '../../../job/define-job.ts'
import { type JobState, recall } from '../../../job/state.ts'
import { toIso } from '../../answer.ts'
import { holdBack, resumeRegistered } from '../logs/cursors.ts'
import { type ContractEvent, decodeLogs, type Followed, findOmitted, readTurns } from '../logs/follow.ts'
import type { Node } from '../logs/node.ts'
import type { HeldTurns } from '../logs/turns.ts'
import { type OwnedGovernor, toTimeOrNull } from './rows.ts'
import { TIMELOCK_TOPICS, type TimelockEvent, timelockDecoder } from './timelock-events.ts'

/** The grace period of Compound's timelock. A call expires if it is not executed within this period after its time. */
const GRACE_SECONDS = (14 * DAY_MS) / 1000

const owner = z.object({ dao: z.number(), space: z.string(), fromBlock: z.number() })
type Owner = z.infer<typeof owner>
const ownersByTimelock = z.record(z.string(), z.array(owner))

/** A timelock, and the governors that queue proposals in it. */
interface Timelock extends Followed {
  readonly fromBlock: number
  readonly graceSeconds: number
  readonly owners: readonly Owner[]
}

/** A governor's new timelock, by address, in the block of its event. */
export interface TimelockChange {
  readonly governor: OwnedGovernor
  readonly address: string
  readonly block: number
}

const ZERO_ADDRESS = `0x${'0'.repeat(40)}`

/**
 * Returns the timelocks of governors: those of the registry, and those that their events named in this run or before.
 * Earlier timelocks of a governor stay, because its older proposals are in them.
 */
export async function findTimelocks(
  state: JobState,
  name: string,
  governors: readonly OwnedGovernor[],
  changes: readonly TimelockChange[],
): Promise<Timelock[]> {
  const stored = (await recall(state, name, ownersByTimelock)) ?? {}
  const named = new Map(Object.entries(stored).map(([address, owners]) => [address, [...owners]]))
  for (const { governor, address, block } of changes)
    if (address !== ZERO_ADDRESS) addOwner(named, address, { ...toOwner(governor), fromBlock: block })
  if (changes.length > 0) state.set(name, JSON.stringify(Object.fromEntries(named)))
  const all = new Map([...named].map(([address, owners]) => [address, [...owners]]))
  for (const governor of governors)
    for (const { address } of governor.timelocks ?? []) addOwner(all, address, toOwner(governor))
  const grace = new Map(governors.flatMap(({ timelocks = [] }) => timelocks.map((one) => [one.address, one])))
  const bySpace = new Map(governors.map((one) => [one.proposalSpace, one]))
  return [...all].flatMap(([address, owners]) => {
    const governor = owners.flatMap(({ space }) => bySpace.get(space) ?? [])[0]
    if (governor === undefined) return []
    const { dao, chain } = governor
    const space = governor.space.slice(0, -governor.address.length) + address
    const graceSeconds = grace.get(address)?.graceSeconds ?? GRACE_SECONDS
    const fromBlock = Math.min(...owners.map((one) => one.fromBlock))
    return [{ address, dao, chain, space, fromBlock, graceSeconds, owners }]
  })
}

const toOwner = ({ dao, proposalSpace, fromBlock }: OwnedGovernor): Owner => ({ dao, space: proposalSpace, fromBlock })

/** Owners stay in an order that does not depend on runs, because a changed timelock is read again. */
function addOwner(all: Map<string, Owner[]>, address: string, added: Owner): void {
  const before = all.get(address) ?? []
  const same = before.find(({ dao, space }) => dao === added.dao && space === added.space)
  const first = { ...added, fromBlock: Math.min(added.fromBlock, same?.fromBlock ?? added.fromBlock) }
  const owners = [...before.filter((one) => one !== same), first]
  all.set(
    address,
    owners.sort((a, b) => a.dao - b.dao || (a.space < b.space ? -1 : 1)),
  )
}

interface TimelockReading {
  readonly rows: readonly Candidate<GovernorsRow>[]
  readonly timelocks: readonly Timelock[]
  readonly turns: HeldTurns
  readonly unread: number
}

interface ToRead {
  readonly chain: string
  /** Name of the cursors in the state. */
  readonly cursors: string
  readonly state: JobState
  /** In Unix milliseconds. */
  readonly slot: number
  /** The last block to read. */
  readonly to: number
  readonly most: number
}

/** Reads the events of timelocks from their own cursors, each to the same block as the governors. */
export async function readTimelocks(
  node: Node,
  timelocks: readonly Timelock[],
  { chain, cursors, state, slot, to, most }: ToRead,
  signal: AbortSignal,
): Promise<TimelockReading> {
  const resumed = await resumeRegistered(state, cursors, { contracts: timelocks, head: to })
  const taken = await readTurns(node, timelocks, { resumed, to, most, topics: TIMELOCK_TOPICS }, signal)
  const { events, gaps } = await decodeLogs(
    node,
    taken.logs,
    { contracts: timelocks, decoderOf: () => timelockDecoder },
    signal,
  )
  const { turns, omitted } = await holdBack(state, `${chain}.timelocks`, { turns: taken, gaps, slot })
  resumed.note(turns)
  const rows = [...events.flatMap(toEventRows), ...findOmitted(omitted, timelocks).flatMap(toOmittedRows)]
  return { rows, timelocks, turns, unread: gaps.length }
}

/** Returns the error of each governor's space whose timelocks could not be read, and the spaces with more to read. */
export function toTimelockProgress({ timelocks, turns }: TimelockReading) {
  const byOwner = groupBy(
    timelocks.flatMap((timelock) => timelock.owners.map(({ space }) => ({ space, timelock }))),
    ({ space }) => space,
  )
  return (space: string) => {
    const own = (byOwner.get(space) ?? []).map(({ timelock }) => timelock.address)
    const [failure] = own.flatMap((address) => turns.failed.get(address) ?? turns.held.get(address) ?? [])
    return { failure, isUnfinished: own.some((address) => turns.unfinished.has(address)) }
  }
}

type Event = ContractEvent<Timelock, TimelockEvent>

function toEventRows({ contract, event, log, time }: Event): Candidate<GovernorsRow>[] {
  const { step, operation, delay, eta } = event
  const executableAt = eta ?? (delay === undefined ? undefined : BigInt(time) + delay)
  const times = {
    eta: eta === undefined ? null : toTimeOrNull(Number(eta)),
    executable_at: executableAt === undefined ? null : toTimeOrNull(Number(executableAt)),
    expires_at: eta === undefined ? null : toTimeOrNull(Number(eta) + contract.graceSeconds),
  }
  const where = { block_number: log.blockNumber, log_index: log.logIndex, tx: log.transactionHash }
  return contract.owners.map(({ dao, space }) => ({
    ...{ dao, space, kind: 'timelock', proposal: '', at: toIso(time * 1000), operation, step },
    ...times,
    ...where,
  }))
}

/** Returns rows without values for a log that is permanently omitted, so that the row check counts it. */
const toOmittedRows = ({ contract, reason }: ReturnType<typeof findOmitted<Timelock>>[number]) =>
  contract.owners.map(
    ({ dao, space }): Candidate<GovernorsRow> => ({
      ...{ dao, space, kind: 'timelock', proposal: '', at: null, operation: null, [OMITTED]: [reason] },
    }),
  )
