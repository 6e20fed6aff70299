import { requireMigrated } from '../../clickhouse/migrations.ts'
import { runCommand } from '../../shared/command.ts'
import { readCommandLine } from '../../shared/command-line.ts'
import { loadCommandConfig } from '../../shared/config/config.ts'
import { createRedactor, findSecrets } from '../../shared/config/secrets.ts'
import { DataError } from '../../shared/errors.ts'
import { isMain } from '../../shared/process.ts'
import { createParts } from '../../shared/progress-bar.ts'
import { createRedis, requireRedis } from '../../shared/queue/redis.ts'
import { createDatabase, type Database, readRegistry } from '../../shared/store/store.ts'
import { createLog } from '../../shared/telemetry/log.ts'
import type { Job } from '../job/define-job.ts'
import { jobs } from '../jobs/list.ts'
import { type ReplayOptions, type ReplayResult, replay } from '../run/runner.ts'
import { createRecomputation } from '../schedule/recompute.ts'
import { toTime } from '../terminal/option-time.ts'
import { toShortTime, toTable } from '../terminal/text-table.ts'
import { checkAll, MOST_SHOWN, RECORDINGS, toChanges, toCheckReport, toCounts } from './replay-check.ts'

/** Exit code if rows differ and are not applied; 1 means that the command failed. */
const DIFFERENT = 3

const HELP = `npm run replay -- <dataset> --from <time> --to <time> [options]
npm run replay -- --check [<dataset>...] [options]

Decodes the stored answers of providers again, with the code of today and without any network, and prints the rows that
differ from the stored ones: added, changed and removed, with their members. Answers are stored for RAW_ANSWERS_DAYS and
RAW_ANSWERS_UNREPEATABLE_DAYS. The settings of providers must be those of the worker; keys may have any value.

  --from, --to  ISO dates or date-times, UTC; runs of slots and ranges that overlap this time; from is inclusive
  --apply       stores the differences as a correction, with change events; computed data follows by itself
  --json
  --help

--check decodes recorded answers in files, of all datasets by default, and compares the rows with the accepted ones beside
them. It needs neither network nor stores. Use it after a change of a decoder.

  --recordings  the folder of the recordings; default ${RECORDINGS}
  --accept      writes the rows of today as the accepted ones; review the difference in Git
  --json
  UPSTREAM_DATA_DIR  folder of the bodies that some recordings only name; they are skipped without it

Exit codes: 0 nothing differs, or the differences are stored; 1 failed; ${DIFFERENT} rows differ.

Datasets: ${jobs
  .filter(({ computedFrom }) => computedFrom.length === 0)
  .map(({ name }) => name)
  .join(', ')}`

interface Request {
  readonly job: Job
  readonly range: ReplayOptions['range']
}

/**
 * Validates the command line.
 * @throws DataError `payload` that lists every mistake.
 */
export function toRequest(
  words: readonly string[],
  options: { from?: string | undefined; to?: string | undefined },
): Request {
  const mistakes: string[] = []
  const [dataset, ...more] = words
  const job = jobs.find(({ name }) => name === dataset)
  if (dataset === undefined) mistakes.push('name a dataset')
  else if (job === undefined)
    mistakes.push(`${dataset}: no such dataset; there are ${jobs.map(({ name }) => name).join(', ')}`)
  if (more.length > 0) mistakes.push(`one dataset at a time, not ${more.join(', ')} too`)
  const from = toTime('--from', options.from, mistakes)
  const to = toTime('--to', options.to, mistakes)
  if (from !== undefined && to !== undefined && from >= to) mistakes.push('--from is not before --to')
  if (mistakes.length > 0 || job === undefined || from === undefined || to === undefined)
    throw new DataError('payload', mistakes.join('\n'))
  return { job, range: { from, to } }
}

async function main(): Promise<void> {
  const { values, positionals } = readCommandLine({
    allowPositionals: true,
    options: {
      from: { type: 'string' },
      to: { type: 'string' },
      apply: { type: 'boolean', default: false },
      check: { type: 'boolean', default: false },
      recordings: { type: 'string' },
      accept: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(HELP)
  if (values.check) return await check(positionals, values)
  const { job, range } = toRequest(positionals, values)
  const config = loadCommandConfig()
  const db = createDatabase(config.clickhouse, 'write')
  await requireMigrated(db)
  const redact = createRedactor(findSecrets(config))
  const context = { config, db, registry: await readRegistry(db), log: createLog('replay', 'error', redact), redact }
  const onRuns = createParts('runs')
  const result = values.apply
    ? await withCorrections(db, config, (apply) => replay(job, context, { range, onRuns, apply }))
    : await replay(job, context, { range, onRuns })
  print(job, context.registry, result, values)
  await db.close()
  if (result.differences.length > 0 && !values.apply) process.exitCode = DIFFERENT
}

async function check(
  datasets: readonly string[],
  { accept, json, ...options }: { recordings?: string | undefined; accept: boolean; json: boolean },
): Promise<void> {
  const result = await checkAll({ datasets, accepts: accept, folder: options.recordings ?? RECORDINGS })
  console.log(toCheckReport(result, json))
  const isDifferent = result.recordings.some(({ differences, failure }) => differences.length > 0 || failure)
  if (isDifferent) process.exitCode = DIFFERENT
}

type Apply = NonNullable<ReplayOptions['apply']>

async function withCorrections<T>(
  db: Database,
  { redis: store, datasetsOff }: ReturnType<typeof loadCommandConfig>,
  work: (apply: Apply) => Promise<T>,
): Promise<T> {
  const redis = createRedis(store.url, createLog('replay', 'error'))
  await requireRedis(redis)
  const recomputation = createRecomputation(jobs, redis, store.prefix, db, datasetsOff)
  try {
    return await work({ redis, recomputation, now: Date.now })
  } finally {
    await recomputation.close()
    redis.disconnect()
  }
}

function print(
  job: Job,
  registry: Parameters<Job['entities']>[0],
  { differences, ...done }: ReplayResult,
  { apply, json }: { readonly apply: boolean; readonly json: boolean },
): void {
  const names = new Map(job.entities(registry).map(({ key, id, name }) => [key, { id, name }]))
  if (json) {
    const shown = differences.map(({ entity, at, collectedAt, kind, before, after, members }) => ({
      ...{ dataset: job.name, id: names.get(entity)?.id ?? null, at: new Date(at).toISOString() },
      ...{ kind, before, after, members, collectedAt: new Date(collectedAt).toISOString() },
    }))
    console.log(JSON.stringify({ ...done, isApplied: apply, differences: shown }, null, 2))
    return
  }
  const cells = differences
    .slice(0, MOST_SHOWN)
    .map(({ entity, at, ...one }) => [
      one.kind,
      names.get(entity)?.name ?? String(entity),
      toShortTime(at),
      toChanges(one),
    ])
  if (cells.length > 0) console.log(toTable(['row', 'entity', 'time (UTC)', 'members'], cells))
  const counts = toCounts(differences)
  console.log(`${done.runs} runs, ${done.answers} answers, ${done.rows} rows: ${counts}${apply ? ', stored' : ''}`)
}

if (isMain(import.meta.url)) runCommand(main)
