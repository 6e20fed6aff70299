import { runCommand } from '../../shared/command.ts'
import { readCommandLine } from '../../shared/command-line.ts'
import { type Config, loadCommandConfig } from '../../shared/config/config.ts'
import { DataError } from '../../shared/errors.ts'
import { INTERVALS } from '../../shared/intervals.ts'
import { isMain } from '../../shared/process.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import { createDatabase, readRegistryOrFiles } from '../../shared/store/store.ts'
import { createLog } from '../../shared/telemetry/log.ts'
import { planBackfill, runBackfills } from '../backfill/plan.ts'
import { jobs } from '../jobs/list.ts'
import { RANGE_OPTIONS } from '../terminal/option-time.ts'
import { withStores } from './with-stores.ts'

const HELP = `npm run backfill -- <dataset> --from <date> --to <date> [options]

Records that history of a dataset is expected, and collects its missing ranges through the dataset's queue; a worker must
serve that queue. The same command continues an interrupted run, and does not change stored data. At the end it prints the
covered ranges, and the reasons for the others. Exits with 0 only if every range is stored or known to have no data. With
--again, and for computed datasets, every range must also have been collected by this run.

  --from, --to      ISO dates or date-times, UTC; from is inclusive, to exclusive (default: now)
  --interval        ${INTERVALS.join(', ')} (default: the finest that the dataset's history has)
  --tokens, --daos  only these: symbols, names, slugs or ids, separated by commas
  --dry-run         prints the jobs of the whole range, also of known parts, and enqueues nothing
  --again           also collects ranges that are stored or known to have no data
  --help

Datasets with history: ${jobs.flatMap(({ name, history }) => (history === undefined ? [] : [name])).join(', ')}`

async function main(): Promise<void> {
  const { values, positionals } = readCommandLine({
    allowPositionals: true,
    options: {
      ...RANGE_OPTIONS,
      tokens: { type: 'string' },
      daos: { type: 'string' },
      'dry-run': { type: 'boolean', default: false },
      again: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(HELP)
  if (values.tokens !== undefined && values.daos !== undefined)
    throw new DataError('payload', '--tokens and --daos exclude each other: use one of them')
  const config = loadCommandConfig()
  const [dataset, ...more] = positionals
  if (more.length > 0) throw new DataError('payload', `one dataset at a time, not ${positionals.join(' and ')}`)
  const only = values.tokens ?? values.daos
  const request = { dataset, from: values.from, to: values.to, interval: values.interval, only }
  const backfill = planBackfill(request, await readRegistryInForce(config), Date.now(), config.datasetsOff)
  if (values['dry-run']) {
    console.log(`${backfill.title}: ${backfill.chunks.length} jobs would be enqueued`)
    for (const { id } of backfill.chunks) console.log(`  ${id}`)
    return
  }
  process.once('SIGINT', () => {
    console.error(`
stopped watching. Workers continue the queued jobs, and the scheduler enqueues the buckets that these jobs do not store.
Repeat the command to watch again. npm run gaps -- ${backfill.job.name} lists the missing ranges.`)
    process.exit(130)
  })
  const isComplete = await withStores(config, (stores) => runBackfills([backfill], stores, { again: values.again }))
  if (!isComplete) process.exitCode = 1
}

/** Falls back to the registry files if ClickHouse is unavailable, so that the request is still validated. */
async function readRegistryInForce({ clickhouse }: Config): Promise<Registry> {
  const db = createDatabase(clickhouse, 'write')
  try {
    return await readRegistryOrFiles(db, createLog('backfill', 'warn'))
  } finally {
    await db.close()
  }
}

if (isMain(import.meta.url)) runCommand(main)
