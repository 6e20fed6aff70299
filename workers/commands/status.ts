import { parseArgs } from 'node:util'
import { runCommand } from '../../shared/command.ts'
import { loadCommandConfig } from '../../shared/config/config.ts'
import { type DatasetFacts, datasets } from '../../shared/datasets/list.ts'
import type { Cadence } from '../../shared/intervals.ts'
import { isMain } from '../../shared/process.ts'
import { createDatabase, type Database } from '../../shared/store/clickhouse.ts'
import { countRows } from '../../shared/store/count-rows.ts'
import { type FreshnessState, readNewest, toFreshnessState, toLagSeconds } from '../../shared/store/freshness.ts'
import { toShortDuration, toShortTime, toTable } from './text-table.ts'

const HELP = `npm run status -- [--json]

How fresh the stored data of each dataset is, from ClickHouse alone: it tells of a dead scheduler or a worker that hangs
as well as of a provider that is away. A dataset is late from 1.5 cadences on and stale from 2 on. Exits with 1 when one
is stale or empty.`

/** How one dataset stands; `lagSeconds` is the age of its newest datum, null while it is empty. */
export interface DatasetStatus {
  readonly dataset: string
  readonly cadence: Cadence
  readonly lastUpdated: string | null
  readonly lagSeconds: number | null
  readonly state: FreshnessState
  readonly rows: number
}

/** Reads how each dataset stands at a time, in Unix milliseconds. */
export function readStatus(db: Database, of: readonly DatasetFacts[], now: number): Promise<DatasetStatus[]> {
  return Promise.all(
    of.map(async (dataset) => {
      const newest = await readNewest(db, dataset)
      const lagSeconds = toLagSeconds(newest, now)
      return {
        dataset: dataset.name,
        cadence: dataset.cadence,
        lastUpdated: newest === null ? null : new Date(newest).toISOString(),
        lagSeconds,
        state: toFreshnessState(lagSeconds, dataset.cadence),
        rows: await countRows(db, dataset.series.table),
      }
    }),
  )
}

/** The status as a table for people. */
export function toStatusTable(statuses: readonly DatasetStatus[]): string {
  return toTable(
    ['dataset', 'cadence', 'last updated (UTC)', 'lag', 'state', 'rows'],
    statuses.map(({ dataset, cadence, lastUpdated, lagSeconds, state, rows }) => [
      dataset,
      cadence,
      lastUpdated === null ? '-' : toShortTime(Date.parse(lastUpdated)),
      lagSeconds === null ? '-' : toShortDuration(lagSeconds),
      state,
      String(rows),
    ]),
  )
}

/** Whether an operator has to look: late data may still arrive, stale data is overdue. */
export function isAlarming(statuses: readonly DatasetStatus[]): boolean {
  return statuses.some(({ state }) => state === 'stale' || state === 'empty')
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { json: { type: 'boolean' }, help: { type: 'boolean' } } })
  if (values.help) return console.log(HELP)
  const db = createDatabase(loadCommandConfig().clickhouse, 'read')
  const statuses = await readStatus(db, datasets, Date.now())
  await db.close()
  console.log(values.json ? JSON.stringify(statuses, null, 2) : toStatusTable(statuses))
  if (isAlarming(statuses)) process.exitCode = 1
}

if (isMain(import.meta.url)) runCommand(main)
