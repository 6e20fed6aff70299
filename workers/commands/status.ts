import { runCommand } from '../../shared/command.ts'
import { readCommandLine } from '../../shared/command-line.ts'
import { loadCommandConfig } from '../../shared/config/config.ts'
import type { DatasetFacts } from '../../shared/datasets/define-dataset.ts'
import { datasets } from '../../shared/datasets/list.ts'
import type { Cadence } from '../../shared/intervals.ts'
import { completenessOf, openLedgers } from '../../shared/ledger/ledger.ts'
import { isMain } from '../../shared/process.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import {
  countRows,
  createDatabase,
  type Database,
  type FreshnessState,
  readFailing,
  readNewest,
  readRegistry,
  toFreshnessState,
  toLagSeconds,
} from '../../shared/store/store.ts'
import { toShortDuration, toShortTime, toTable } from '../terminal/text-table.ts'

const HELP = `npm run status -- [--json]

Prints freshness and completeness of the stored data of each dataset, and the failing providers. Reads ClickHouse only, so
it also detects a dead scheduler or a worker that hangs. A dataset is late from 1.5 cadences on, or if entities are overdue
that some provider serves, and stale from 2 cadences on. Exits with 1 if a dataset is stale or empty. Datasets that are off
(DATASETS_OFF) do not count, nor do empty ones that no provider serves, such as without a key: unserved.`

/** Status of a dataset. `lagSeconds` is the age of its newest value, null if it is empty. */
export interface DatasetStatus {
  readonly dataset: string
  readonly cadence: Cadence
  readonly lastUpdated: string | null
  readonly lagSeconds: number | null
  readonly state: FreshnessState
  /** Why the age of the dataset needs no attention: its collection is off, or no provider serves it. */
  readonly idle: 'off' | 'unserved' | null
  readonly rows: number
  /** Stored share of the data expected up to now, 0 to 1. */
  readonly complete: number
  /** Failing providers, with the start and the reason of the failure. */
  readonly failing: readonly { readonly provider: string; readonly since: string; readonly reason: string }[]
}

/** Reads the status of each dataset at `now` (Unix milliseconds). `off` lists the datasets that are not collected. */
export async function readStatus(
  db: Database,
  of: readonly DatasetFacts[],
  registry: Registry,
  now: number,
  off: readonly string[] = [],
): Promise<DatasetStatus[]> {
  const [completeness, failing] = await Promise.all([openLedgers(db, of).completeness(registry, now), readFailing(db)])
  return Promise.all(
    of.map(async (dataset) => {
      const newest = await readNewest(db, dataset)
      const lagSeconds = toLagSeconds(newest, now)
      const { complete, overdue, isUnserved } = completenessOf(completeness, dataset)
      return {
        dataset: dataset.name,
        cadence: dataset.cadence,
        lastUpdated: newest === null ? null : new Date(newest).toISOString(),
        lagSeconds,
        state: toFreshnessState(lagSeconds, dataset.cadence, overdue.length),
        idle: off.includes(dataset.name) ? 'off' : newest === null && isUnserved ? 'unserved' : null,
        rows: await countRows(db, dataset.series.table),
        complete,
        failing: Object.entries(failing.get(dataset.name) ?? {}).map(([provider, failure]) => ({
          provider,
          ...failure,
        })),
      }
    }),
  )
}

/** Rounded down, so that only complete data shows 100 %. */
const toPercent = (share: number) => `${Math.floor(share * 1000) / 10} %`

/** Formats the status as a table, followed by the failing providers. */
export function toStatusTable(statuses: readonly DatasetStatus[]): string {
  const table = toTable(
    ['dataset', 'cadence', 'last updated (UTC)', 'lag', 'state', 'rows', 'complete'],
    statuses.map(({ dataset, cadence, lastUpdated, lagSeconds, state, idle, rows, complete }) => [
      dataset,
      cadence,
      lastUpdated === null ? '-' : toShortTime(Date.parse(lastUpdated)),
      lagSeconds === null ? '-' : toShortDuration(lagSeconds),
      idle ?? state,
      String(rows),
      toPercent(complete),
    ]),
  )
  const failing = statuses.flatMap((status) =>
    status.failing.map(({ provider, since, reason }) => {
      return `${status.dataset}: ${provider} fails since ${toShortTime(Date.parse(since))}: ${reason}`
    }),
  )
  return [table, ...failing].join('\n')
}

/**
 * Returns whether an operator is needed. Late data may still arrive, stale data does not; idle datasets are as
 * configured.
 */
export function isAlarming(statuses: readonly DatasetStatus[]): boolean {
  return statuses.some(({ state, idle }) => idle === null && (state === 'stale' || state === 'empty'))
}

async function main(): Promise<void> {
  const { values } = readCommandLine({ options: { json: { type: 'boolean' }, help: { type: 'boolean' } } })
  if (values.help) return console.log(HELP)
  const { clickhouse, datasetsOff } = loadCommandConfig()
  const db = createDatabase(clickhouse, 'read')
  const statuses = await readStatus(db, datasets, await readRegistry(db), Date.now(), datasetsOff)
  await db.close()
  console.log(values.json ? JSON.stringify(statuses, null, 2) : toStatusTable(statuses))
  if (isAlarming(statuses)) process.exitCode = 1
}

if (isMain(import.meta.url)) runCommand(main)
