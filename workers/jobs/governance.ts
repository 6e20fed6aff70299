import { z } from 'zod'
import { type GovernanceRow, governance } from '../../shared/datasets/governance.ts'
import { type Candidate, defineJob } from '../job/define-job.ts'
import type { JobState } from '../job/state.ts'
import { toIso } from '../providers/answer.ts'
import type { Allowance, Cursors, VotingDao } from '../providers/contracts/governance.ts'
import { snapshot } from '../providers/snapshot/governance.ts'
import { askEach } from '../run/ask-each.ts'

/**
 * Votes and proposals of every live DAO with a Snapshot space. Spaces are read on from where the last run came to. A
 * run takes a bounded number of pages and stores each space's cursors once its rows are stored, so that the first
 * reading of millions of votes goes on over several runs, whatever happens to one of them. Runs come every hour for its
 * sake: the counts are told only from when a space was read to its end, and then they are more than daily.
 */
export default defineJob({
  name: 'governance',
  cadence: '1h',
  dataset: governance,
  providers: [snapshot],
  entities: (registry) => registry.daos.filter((dao): dao is VotingDao => dao.live && dao.snapshotSpace !== null),
  run: async ({ provider, entities, slot, state, signal, log }) => {
    const turns = await toTurns(entities, state)
    const allowance = createAllowance(provider.pagesPerRun)
    const read = async ({ dao, cursors }: Turn) => {
      // Whose turn does not come is first in the next run.
      if (!allowance.isLeft()) return []
      const reading = await provider.fetchGovernance(dao, cursors, allowance, signal)
      if (reading === undefined) return undefined
      state.set(dao.snapshotSpace, JSON.stringify({ ...reading.cursors, slot } satisfies Remembered))
      return reading.isComplete ? [...reading.rows, toReadingRow(dao, slot)] : reading.rows
    }
    const answers = await askEach(turns, read, { concurrency: provider.concurrency, log })
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

function createAllowance(pages: number): Allowance & { isLeft(): boolean } {
  let left = pages
  return {
    isLeft: () => left > 0,
    take() {
      left -= 1
      return left >= 0
    },
  }
}

function toReadingRow(dao: VotingDao, slot: number): Candidate<GovernanceRow> {
  return { dao: dao.key, space: dao.snapshotSpace, kind: 'reading', proposal: '', address: '', at: toIso(slot) }
}
