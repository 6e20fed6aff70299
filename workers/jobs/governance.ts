import { z } from 'zod'
import { type GovernanceRow, governance, type VotingDao } from '../../shared/datasets/governance.ts'
import { createAllowance } from '../job/allowance.ts'
import { type Candidate, defineJob } from '../job/define-job.ts'
import type { JobState } from '../job/state.ts'
import { toIso } from '../providers/answer.ts'
import { askEach } from '../providers/ask-each.ts'
import type { Cursors } from '../providers/contracts/governance.ts'
import { snapshot } from '../providers/snapshot/governance.ts'

/**
 * Votes and proposals of every live DAO with a Snapshot space. Each run goes on from the cursors that the last one
 * stored, and takes a bounded number of pages: the first reading of millions of votes takes many, and one
 * that dies costs only its own pages. A space's counts are served from the moment at which it was read to its end. Runs
 * come every hour, so that this moment comes soon.
 */
export default defineJob({
  name: 'governance',
  cadence: '1h',
  dataset: governance,
  providers: [snapshot],
  entities: governance.entities,
  run: async ({ provider, entities, slot, state, signal, log, refuse, noteRead, putOff, noteMore }) => {
    const turns = await toTurns(entities, state)
    const allowance = createAllowance(provider.pagesPerRun)
    const read = async ({ dao, cursors }: Turn) => {
      // No pages are left for this space: it is the first when what came is stored.
      if (!allowance.isLeft()) {
        putOff([dao])
        noteMore()
        return []
      }
      const reading = await provider.fetchGovernance(dao, cursors, allowance, signal)
      if (reading === undefined) return undefined
      state.set(dao.snapshotSpace, JSON.stringify({ ...reading.cursors, slot } satisfies Remembered))
      if (!reading.isComplete) {
        putOff([dao])
        noteMore()
        return reading.rows
      }
      noteRead([dao])
      return [...reading.rows, toReadingRow(dao, slot)]
    }
    const answers = await askEach(turns, read, {
      concurrency: provider.concurrency,
      log,
      refuse: ({ dao }, reason) => refuse(dao, reason),
    })
    return answers.flat()
  },
})

const cursor = z.object({ from: z.number(), skip: z.number() })
/** What is remembered of a space: up to where it was read, and in which slot it had its turn. */
const remembered = z.object({ proposals: cursor, votes: cursor, slot: z.number() })
type Remembered = z.infer<typeof remembered>

const UNREAD: Remembered = { proposals: { from: 0, skip: 0 }, votes: { from: 0, skip: 0 }, slot: 0 }

interface Turn {
  readonly id: string
  readonly key: number
  readonly name: string
  readonly dao: VotingDao
  readonly cursors: Cursors
  readonly slot: number
}

/** The DAOs with their cursors, those first whose last turn is longest ago. */
async function toTurns(daos: readonly VotingDao[], state: JobState): Promise<Turn[]> {
  const turns = await Promise.all(
    daos.map(async (dao) => {
      const value = await state.get(dao.snapshotSpace)
      const { slot, ...cursors } = remembered.safeParse(JSON.parse(value ?? 'null')).data ?? UNREAD
      return { id: dao.id, key: dao.key, name: dao.name, dao, cursors, slot }
    }),
  )
  return turns.sort((left, right) => left.slot - right.slot)
}

function toReadingRow(dao: VotingDao, slot: number): Candidate<GovernanceRow> {
  return { dao: dao.key, space: dao.snapshotSpace, kind: 'reading', proposal: '', address: '', at: toIso(slot) }
}
