import { requireMigrated } from '../../clickhouse/migrations.ts'
import { totalBuckets } from '../../shared/buckets.ts'
import { runCommand } from '../../shared/command.ts'
import { readCommandLine } from '../../shared/command-line.ts'
import { loadCommandConfig } from '../../shared/config/config.ts'
import { datasets } from '../../shared/datasets/list.ts'
import { DataError } from '../../shared/errors.ts'
import { type LedgerDataset, openLedger } from '../../shared/ledger/ledger.ts'
import { isMain } from '../../shared/process.ts'
import { createParts } from '../../shared/progress-bar.ts'
import { createRedis, requireRedis } from '../../shared/queue/redis.ts'
import { createDatabase, type Database, publishChange } from '../../shared/store/store.ts'
import { createLog } from '../../shared/telemetry/log.ts'
import { jobs } from '../jobs/list.ts'
import { toTable } from '../terminal/text-table.ts'

/** Returns the datasets without history at any provider: buckets removed from their coverage stay missing. */
function withoutHistory(): string[] {
  return jobs.filter(({ history, resumes }) => history === undefined && !resumes).map(({ dataset }) => dataset.name)
}

/** Exit code; 1 means that the check itself failed. */
const UNFOUNDED = 3

const HELP = `npm run coverage -- recount [dataset] [options]

Compares the coverage with the stored rows. Adds stored buckets that the coverage lacks, at the step of the rows. Prints the
number of covered buckets without a row, and exits with ${UNFOUNDED} if there are any. May be repeated.
governance, governors and delegations are not compared, because many covered days have no rows. Neither is dex-trades, with one
exception: an earlier version recorded hours as covered that it had not read. After its upgrade, hours without a trade and those
beside them count as unproven until --repair has removed them; they are then read again.

  --repair       removes buckets without a row from the coverage, so that they are collected again; except for datasets
                 whose providers have no history (${withoutHistory().join(', ')}),
                 which would only count as less complete
  --repair-lost  removes them for these datasets as well
  --json
  --help

Datasets: ${datasets.map(({ name }) => name).join(', ')}`

/** Result of a recount, in buckets. `comparable` is false if rows cannot prove the coverage. */
interface Recount {
  readonly dataset: string
  readonly comparable: boolean
  readonly added: number
  readonly unfounded: number
  readonly repaired: boolean
}

interface RecountOptions {
  readonly repair: boolean
  readonly repairLost: boolean
  readonly onChange: () => Promise<void>
}

/** `onChange` is called right after each change of the coverage, even if a later step fails. */
async function recount(
  db: Database,
  dataset: LedgerDataset,
  { repair, repairLost, onChange }: RecountOptions,
): Promise<Recount> {
  const ledger = openLedger(db, dataset)
  const unfounded = await ledger.findUnfounded(createParts(`${dataset.name}: coverage`))
  const hasNoHistory = withoutHistory().includes(dataset.name)
  const isRepaired = unfounded.length > 0 && (repairLost || (repair && !hasNoHistory))
  if (isRepaired) {
    await ledger.removeUnfounded(unfounded)
    await onChange()
  } else if (repair && unfounded.length > 0)
    console.error(
      `${dataset.name}: ${totalBuckets(unfounded)} buckets without a row stay, because no provider has them any more: --repair-lost removes them`,
    )
  const added = await ledger.addFromRows(Date.now(), createParts(`${dataset.name}: rows`))
  if (added > 0) await onChange()
  return {
    dataset: dataset.name,
    comparable: !dataset.resumes || unfounded.length > 0,
    added,
    unfounded: totalBuckets(unfounded),
    repaired: isRepaired,
  }
}

function toRecountTable(recounts: readonly Recount[]): string {
  return toTable(
    ['dataset', 'added', 'without a row'],
    recounts.map(({ dataset, comparable, added, unfounded, repaired }) =>
      comparable
        ? [dataset, String(added), `${unfounded}${repaired ? ' (taken out)' : ''}`]
        : [dataset, '-', 'rows cover only a part'],
    ),
  )
}

async function main(): Promise<void> {
  const { values, positionals } = readCommandLine({
    allowPositionals: true,
    options: {
      repair: { type: 'boolean', default: false },
      'repair-lost': { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(HELP)
  const [action, name, ...more] = positionals
  const selected = datasets.filter((dataset) => name === undefined || dataset.name === name)
  if (action !== 'recount' || more.length > 0 || selected.length === 0)
    throw new DataError('payload', `recount and at most one dataset\n\n${HELP}`)
  const config = loadCommandConfig()
  const db = createDatabase(config.clickhouse, 'write')
  const redis = createRedis(config.redis.url, createLog('coverage', 'error'))
  try {
    await requireMigrated(db)
    await requireRedis(redis)
    const stores = { db, redis, prefix: config.redis.prefix }
    const recounts: Recount[] = []
    for (const dataset of selected) {
      // API responses report which data is coarser than requested, which depends on the coverage.
      const onChange = () => publishChange(stores, { dataset: dataset.name })
      const { repair, 'repair-lost': repairLost } = values
      recounts.push(await recount(db, dataset, { repair, repairLost, onChange }))
    }
    console.log(values.json ? JSON.stringify(recounts, null, 2) : toRecountTable(recounts))
    if (recounts.some(({ unfounded, repaired }) => unfounded > 0 && !repaired)) process.exitCode = UNFOUNDED
  } finally {
    redis.disconnect()
    await db.close()
  }
}

if (isMain(import.meta.url)) runCommand(main)
