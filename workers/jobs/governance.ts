import { z } from 'zod'
import { type GovernanceRow, governance, type VotingDao } from '../../shared/datasets/governance.ts'
import { type Candidate, defineJob } from '../job/define-job.ts'
import { createAllowance, type JobState, recall } from '../job/state.ts'
import { toIso } from '../providers/answer.ts'
import type { Progress, Reading, Space } from '../providers/contracts/governance.ts'
import { NOT_SENT, requestEach } from '../providers/requests.ts'
import { snapshot } from '../providers/snapshot/governance.ts'

/**
 * Votes and proposals of every live DAO with a Snapshot space. Each run continues from the stored cursors and reads a
 * limited number of pages. The first reading of millions of votes takes many runs, and a run that dies loses only its
 * own pages. A DAO's counts are served after its spaces have been read completely; runs are hourly, so this happens
 * soon.
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
    omit,
    noteRead,
    putOff,
    noteMore,
    providerName,
  }) => {
    const turns = await toTurns(entities, state)
    const allowance = createAllowance(provider.pagesPerRun)
    // Declared outside of the DAO's answer: if one space fails, the rows of the spaces before it are stored with their
    // cursors.
    const rows: Candidate<GovernanceRow>[] = []
    const read = async ({ dao, spaces }: Turn) => {
      const readings: Candidate<GovernanceRow>[] = []
      for (const { progress, ...space } of spaces) {
        // If no pages are left for this space, it is read first after the rows are stored.
        const reading: Reading | undefined =
          allowance.remaining() > 0
            ? await provider.fetchGovernance({ ...space, slot }, progress, allowance, signal)
            : UNREACHED
        // A former space may have been deleted.
        if (reading === undefined && space.space !== dao.snapshotSpace) continue
        if (reading === undefined) return undefined
        if (reading !== UNREACHED)
          state.set(space.space, JSON.stringify({ ...reading.progress, slot } satisfies Remembered))
        for (const row of reading.rows) rows.push(row)
        const [reason] = reading.unreadable
        if (reason !== undefined) omit(dao, { count: reading.unreadable.length, reason: `${space.space}: ${reason}` })
        if (!reading.isComplete) {
          putOff([dao])
          noteMore()
          return reading === UNREACHED ? NOT_SENT : dao
        }
        readings.push(toReadingRow(space, slot))
      }
      noteRead([dao], { to: slot })
      rows.push(...readings)
      return dao
    }
    await requestEach(turns, read, {
      concurrency: provider.concurrency,
      ...{ log, state, providerName },
      expected: peers.own,
      refuse: ({ dao }, reason) => refuse(dao, reason),
    })
    return rows
  },
})

const cursor = z.object({ from: z.number(), skip: z.number() })
const START = { from: 0, skip: 0 }
/**
 * State of a space: its cursors, and the slot of its last turn. State of versions before this one does not match the
 * schema: they had not read all current data, so everything is read again.
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
  /** The current space first, then the former ones. */
  readonly spaces: readonly (Space & { readonly progress: Progress })[]
  readonly slot: number
}

/** Returns the DAOs with their cursors, ordered by last turn, oldest first. */
async function toTurns(daos: readonly VotingDao[], state: JobState): Promise<Turn[]> {
  const turns = await Promise.all(
    daos.map(async (dao) => {
      const cursors = [dao.snapshotSpace, ...dao.formerSnapshotSpaces].map(async (space) => {
        const { slot, ...progress } = (await recall(state, space, remembered)) ?? UNREAD
        return { dao: dao.key, space, progress, slot }
      })
      const [first, ...rest] = await Promise.all(cursors)
      if (first === undefined) throw new Error('a DAO that votes has a space')
      const spaces = [first, ...rest].map(({ slot: _, ...space }) => space)
      return { id: dao.id, key: dao.key, name: dao.name, dao, spaces, slot: first.slot }
    }),
  )
  return turns.sort((a, b) => a.slot - b.slot)
}

function toReadingRow({ dao, space }: Space, slot: number): Candidate<GovernanceRow> {
  return { dao, space, kind: 'reading', proposal: '', address: '', at: toIso(slot) }
}
