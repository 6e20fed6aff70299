import { parseArgs } from 'node:util'
import { runCommand } from '../../shared/command.ts'
import { loadCommandConfig } from '../../shared/config/config.ts'
import type { Cadence } from '../../shared/intervals.ts'
import { isMain } from '../../shared/process.ts'
import { loadRegistry, type Registry } from '../../shared/registry/registry.ts'
import { createDatabase, type Database } from '../../shared/store/clickhouse.ts'
import { countRows } from '../../shared/store/count-rows.ts'
import { FAILING_PROVIDERS, readFailingText } from '../../shared/store/failing-providers.ts'
import { type FreshnessState, readNewest, toFreshnessState, toLagSeconds } from '../../shared/store/freshness.ts'
import type { Job } from '../job/define-job.ts'
import { openState } from '../job/state.ts'
import { jobs } from '../jobs/list.ts'
import { toShortDuration, toShortTime, toTable } from './text-table.ts'
import { readCompleteShare } from './whole-share.ts'

const HELP = `npm run status -- [--json]

How fresh and how complete the stored data of each dataset is, and which providers fail, from ClickHouse alone: it tells of a dead scheduler or a worker that hangs
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
  /** The share of what is wanted and due that is stored, 0 to 1; null while nothing is wanted. */
  readonly complete: number | null
  /** Its providers that fail, since when and why. */
  readonly failing: readonly { readonly provider: string; readonly since: string; readonly reason: string }[]
}

/** Reads how each dataset stands at a time, in Unix milliseconds. */
export function readStatus(
  db: Database,
  of: readonly Job[],
  registry: Registry,
  now: number,
): Promise<DatasetStatus[]> {
  return Promise.all(
    of.map(async (job) => {
      const { dataset } = job
      const newest = await readNewest(db, dataset)
      const lagSeconds = toLagSeconds(newest, now)
      return {
        dataset: dataset.name,
        cadence: dataset.cadence,
        lastUpdated: newest === null ? null : new Date(newest).toISOString(),
        lagSeconds,
        state: toFreshnessState(lagSeconds, dataset.cadence),
        rows: await countRows(db, dataset.series.table),
        complete: await readCompleteShare(db, job, registry, now),
        failing: await readFailing(db, job),
      }
    }),
  )
}

async function readFailing(db: Database, { name }: Job): Promise<DatasetStatus['failing']> {
  const failing = readFailingText(await openState(db, name, Date.now).get(FAILING_PROVIDERS))
  return Object.entries(failing).map(([provider, told]) => ({ provider, ...told }))
}

/** Rounded down: only what is whole is 100 %. */
const toPercent = (share: number) => `${Math.floor(share * 1000) / 10} %`

/** The status as a table for people; below it the providers that fail. */
export function toStatusTable(statuses: readonly DatasetStatus[]): string {
  const table = toTable(
    ['dataset', 'cadence', 'last updated (UTC)', 'lag', 'state', 'rows', 'complete'],
    statuses.map(({ dataset, cadence, lastUpdated, lagSeconds, state, rows, complete }) => [
      dataset,
      cadence,
      lastUpdated === null ? '-' : toShortTime(Date.parse(lastUpdated)),
      lagSeconds === null ? '-' : toShortDuration(lagSeconds),
      state,
      String(rows),
      complete === null ? '-' : toPercent(complete),
    ]),
  )
  const failing = statuses.flatMap((status) =>
    status.failing.map(({ provider, since, reason }) => {
      return `${status.dataset}: ${provider} fails since ${toShortTime(Date.parse(since))}: ${reason}`
    }),
  )
  return [table, ...failing].join('\n')
}

/** Whether an operator has to look: late data may still arrive, stale data is overdue. */
export function isAlarming(statuses: readonly DatasetStatus[]): boolean {
  return statuses.some(({ state }) => state === 'stale' || state === 'empty')
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { json: { type: 'boolean' }, help: { type: 'boolean' } } })
  if (values.help) return console.log(HELP)
  const db = createDatabase(loadCommandConfig().clickhouse, 'read')
  const statuses = await readStatus(db, jobs, loadRegistry(), Date.now())
  await db.close()
  console.log(values.json ? JSON.stringify(statuses, null, 2) : toStatusTable(statuses))
  if (isAlarming(statuses)) process.exitCode = 1
}

if (isMain(import.meta.url)) runCommand(main)
