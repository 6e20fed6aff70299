import { z } from 'zod'
import { type GovernanceRow, governance, type VotingDao } from '../../shared/datasets/governance.ts'
import { createAllowance } from '../job/allowance.ts'
import { type Candidate, defineJob } from '../job/define-job.ts'
import { type JobState, recall } from '../job/state.ts'
import { toIso } from '../providers/answer.ts'
import { askEach } from '../providers/ask-each.ts'
import type { Progress, Reading, Space } from '../providers/contracts/governance.ts'
import { snapshot } from '../providers/snapshot/governance.ts'

/**
 * Votes and proposals of every live DAO with a Snapshot space. Each run goes on from the cursors that the last one
 * stored, and takes a bounded number of pages: the first reading of millions of votes takes many, and one
 * that dies costs only its own pages. A DAO's counts are served from the moment at which its spaces were read to their
 * ends. Runs come every hour, so that this moment comes soon.
 */
export default defineJob({
  name: 'governance',
  cadence: '1h',
  dataset: governance,
  providers: [snapshot],
  entities: governance.entities,
  run: async ({
    provider,
    entities,
    slot,
    state,
    peers,
    signal,
    log,
    refuse,
    leaveOut,
    noteRead,
    putOff,
    noteMore,
    providerName,
  }) => {
    const turns = await toTurns(entities, state)
    const allowance = createAllowance(provider.pagesPerRun)
    // Outside of what a DAO's answer is: where one space fails, what came of those before it is stored with their cursors.
    const rows: Candidate<GovernanceRow>[] = []
    const read = async ({ dao, spaces }: Turn) => {
      const readings: Candidate<GovernanceRow>[] = []
      for (const { progress, ...space } of spaces) {
        // When no pages are left for this space, it is the first when what came is stored.
        const reading: Reading | undefined =
          allowance.left() > 0
            ? await provider.fetchGovernance({ ...space, slot }, progress, allowance, signal)
            : UNREACHED
        // A space that was given up for another one may be gone.
        if (reading === undefined && space.space !== dao.snapshotSpace) continue
        if (reading === undefined) return undefined
        if (reading !== UNREACHED)
          state.set(space.space, JSON.stringify({ ...reading.progress, slot } satisfies Remembered))
        for (const row of reading.rows) rows.push(row)
        const [reason] = reading.unreadable
        if (reason !== undefined)
          leaveOut(dao, { count: reading.unreadable.length, reason: `${space.space}: ${reason}` })
        if (!reading.isComplete) {
          putOff([dao])
          noteMore()
          return dao
        }
        readings.push(toReadingRow(space, slot))
      }
      noteRead([dao])
      rows.push(...readings)
      return dao
    }
    await askEach(turns, read, {
      concurrency: provider.concurrency,
      ...{ log, state, providerName },
      whole: peers.own,
      refuse: ({ dao }, reason) => refuse(dao, reason),
    })
    return rows
  },
})

const cursor = z.object({ from: z.number(), skip: z.number() })
const START = { from: 0, skip: 0 }
/**
 * What is remembered of a space: up to where it was read, and in which slot it had its turn. What a version before this
 * one remembered does not fit: it had not read all that there is now, and everything is read once more.
 */
const remembered = z.object({
  proposals: cursor,
  votes: cursor,
  read: z.number(),
  swept: z.number(),
  pass: z
    .object({
      began: z.number(),
      isSweep: z.boolean(),
      open: z.number().nullable(),
      isWhole: z.boolean().default(true),
    })
    .nullable(),
  unsettled: z.array(z.string()).default([]),
  gap: z.object({ from: z.number(), since: z.number() }).nullable().default(null),
  slot: z.number(),
})
type Remembered = z.infer<typeof remembered>

const NOTHING: Progress = { proposals: START, votes: START, read: 0, swept: 0, pass: null, unsettled: [], gap: null }
const UNREACHED: Reading = { rows: [], progress: NOTHING, isComplete: false, unreadable: [] }
const UNREAD: Remembered = { ...NOTHING, slot: 0 }

interface Turn {
  readonly id: string
  readonly key: number
  readonly name: string
  readonly dao: VotingDao
  /** The one where it votes first, then those where it did. */
  readonly spaces: readonly (Space & { readonly progress: Progress })[]
  readonly slot: number
}

/** The DAOs with their cursors, those first whose last turn is longest ago. */
async function toTurns(daos: readonly VotingDao[], state: JobState): Promise<Turn[]> {
  const turns = await Promise.all(
    daos.map(async (dao) => {
      const known = [dao.snapshotSpace, ...dao.formerSnapshotSpaces].map(async (space) => {
        const { slot, ...progress } = (await recall(state, space, remembered)) ?? UNREAD
        return { dao: dao.key, space, progress, slot }
      })
      const [first, ...others] = await Promise.all(known)
      if (first === undefined) throw new Error('a DAO that votes has a space')
      const spaces = [first, ...others].map(({ slot: _, ...space }) => space)
      return { id: dao.id, key: dao.key, name: dao.name, dao, spaces, slot: first.slot }
    }),
  )
  return turns.sort((left, right) => left.slot - right.slot)
}

function toReadingRow({ dao, space }: Space, slot: number): Candidate<GovernanceRow> {
  return { dao, space, kind: 'reading', proposal: '', address: '', at: toIso(slot) }
}
