import { requireMigrated } from '../../clickhouse/migrations.ts'
import { runCommand } from '../../shared/command.ts'
import { readCommandLine } from '../../shared/command-line.ts'
import { loadCommandConfig } from '../../shared/config/config.ts'
import { DataError } from '../../shared/errors.ts'
import { isMain } from '../../shared/process.ts'
import { createProgress, type Progress } from '../../shared/progress-bar.ts'
import { createRedis, requireRedis } from '../../shared/queue/redis.ts'
import { countRows, createDatabase, type Database, publishChange } from '../../shared/store/store.ts'
import { createLog, type Logger } from '../../shared/telemetry/log.ts'
import { jobs } from '../jobs/list.ts'
import { type Rebuilt, rebuild } from '../rebuild/rebuild.ts'
import { findRollUps, type RollUp } from '../rebuild/roll-ups.ts'

const HELP = `npm run rebuild -- <table> [options]

Computes a roll-up (token_price_rollups) or a derived table again from the stored series, beside the live table, and then
swaps both. Readers and workers continue during the run, and rows that arrive are in the new table, too. The same command
continues an interrupted run. Only one run per table is possible at a time.

  --dry-run         prints what would be computed and changes nothing
  --force           swaps even if the new table has fewer rows than the live one
  --json
  --help

Without a table, or with an unknown one, it prints the possible tables.`

async function findRollUp(db: Database, database: string, table: string | undefined): Promise<RollUp> {
  const rollUps = await findRollUps(
    db,
    database,
    jobs.map(({ dataset }) => dataset),
  )
  const rollUp = rollUps.find((one) => one.table === table)
  if (rollUp !== undefined) return rollUp
  const names = rollUps.map((one) => one.table).join(', ')
  throw new DataError('payload', `${table === undefined ? 'name a table' : `${table} cannot be computed`}: ${names}`)
}

async function runRebuild(db: Database, rollUp: RollUp, force: boolean, log: Logger): Promise<Rebuilt> {
  let progress: Progress | undefined
  const rebuilt = await rebuild(db, rollUp, {
    log,
    now: Date.now,
    force,
    onPlan: (batches) => {
      progress = createProgress(rollUp.table, batches, process.stderr)
    },
    onStep: () => progress?.step(),
  })
  progress?.stop(`${rebuilt.after} rows, ${rebuilt.before} before`)
  return rebuilt
}

async function main(): Promise<void> {
  const { values, positionals } = readCommandLine({
    allowPositionals: true,
    options: {
      'dry-run': { type: 'boolean', default: false },
      force: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(HELP)
  if (positionals.length > 1) throw new DataError('payload', `one table per run: ${positionals.join(', ')} are several`)
  const config = loadCommandConfig()
  const db = createDatabase(config.clickhouse, 'write')
  await requireMigrated(db)
  const redis = createRedis(config.redis.url, createLog('rebuild', 'error'))
  const log = createLog('rebuild', 'warn')
  await requireRedis(redis)
  const rollUp = await findRollUp(db, config.clickhouse.database, positionals[0])
  const { table, raw } = rollUp
  if (values['dry-run']) {
    const plan = { table, rows: await countRows(db, table), raw, rawRows: await countRows(db, raw) }
    if (values.json) console.log(JSON.stringify(plan, null, 2))
    else console.log(`${table} (${plan.rows} rows) would be computed from ${raw} (${plan.rawRows} rows)`)
  } else {
    const rebuilt = await runRebuild(db, rollUp, values.force, log)
    if (values.json) console.log(JSON.stringify({ table, raw, ...rebuilt }, null, 2))
    const stores = { db, redis, prefix: config.redis.prefix }
    if (rollUp.dataset !== undefined) await publishChange(stores, { dataset: rollUp.dataset.name })
  }
  redis.disconnect()
  await db.close()
}

if (isMain(import.meta.url)) runCommand(main)
