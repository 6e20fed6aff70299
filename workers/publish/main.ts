import { requireMigrated } from '../../clickhouse/migrations.ts'
import { runCommand } from '../../shared/command.ts'
import { readCommandLine } from '../../shared/command-line.ts'
import { loadCommandConfig } from '../../shared/config/config.ts'
import { DataError } from '../../shared/errors.ts'
import { isMain, onStopSignal } from '../../shared/process.ts'
import { createParts } from '../../shared/progress-bar.ts'
import { createDatabase, readRegistry } from '../../shared/store/store.ts'
import { createLog } from '../../shared/telemetry/log.ts'
import { verify } from './catalog.ts'
import { published } from './datasets.ts'
import { publish } from './publish.ts'
import { openFolder, openTarget, type Target } from './target.ts'

const HELP = `npm run publish -- --to <folder | s3://bucket/prefix> [options]
npm run publish -- verify --from <folder | s3://bucket/prefix>

Writes the stored data as Parquet files with a catalog, which readers begin with. Only months whose rows changed are written
again, so a second run writes nothing. Stopped or killed, it leaves the old or the new publication, and the next run goes on.
Without --to it writes to PUBLISH_TO. verify reads every file and prints a line for each that is missing or differs from the
catalog; it exits with 1 then. Delete such files: the next run writes them again.

  --only <names>    only these datasets, with commas between; the others stay as they are
  --keep-days <n>   replaced files stay for so many days (default 7, PUBLISH_KEEP_DAYS)
  --json
  --help

Datasets: ${published.map(({ name }) => name).join(', ')}`

function parseKeepDays(text: string | undefined, fallback: number): number {
  if (text === undefined) return fallback
  if (/^\d{1,4}$/.test(text)) return Number(text)
  throw new DataError('payload', `--keep-days: expected a whole number of days, got ${JSON.stringify(text)}`)
}

function parseOnly(text: string | undefined): string[] | undefined {
  const names = text?.split(',').map((name) => name.trim())
  const unknown = names?.find((name) => !published.some((dataset) => dataset.name === name))
  if (unknown === undefined) return names
  const datasetNames = published.map(({ name }) => name).join(', ')
  throw new DataError('payload', `--only: there is no dataset ${JSON.stringify(unknown)}: ${datasetNames}`)
}

async function runVerify(from: string | undefined, isJson: boolean): Promise<void> {
  if (from === undefined) throw new DataError('payload', `verify needs --from <folder>\n\n${HELP}`)
  if (!from.includes('://')) return report(openFolder(undefined, from), from, isJson)
  const config = loadCommandConfig()
  const db = createDatabase(config.clickhouse, 'write')
  try {
    await report(openTarget(db, from, config.publish.s3), from, isJson)
  } finally {
    await db.close()
  }
}

async function report(target: Target, from: string, isJson: boolean): Promise<void> {
  const faults: string[] = []
  for await (const fault of verify(target, createParts(from))) {
    faults.push(fault)
    if (!isJson) console.log(fault)
  }
  if (isJson) console.log(JSON.stringify({ folder: from, faults }, null, 2))
  else if (faults.length === 0) console.log(`${from}: every file is as the catalog says`)
  if (faults.length > 0) process.exitCode = 1
}

async function main(): Promise<void> {
  const { values, positionals } = readCommandLine({
    allowPositionals: true,
    options: {
      to: { type: 'string' },
      from: { type: 'string' },
      only: { type: 'string' },
      'keep-days': { type: 'string' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(HELP)
  const [action, ...more] = positionals
  if (more.length > 0 || (action !== undefined && action !== 'verify')) {
    throw new DataError('payload', `unknown words: ${positionals.join(' ')}\n\n${HELP}`)
  }
  if (action === 'verify') return runVerify(values.from, values.json)
  if (values.from !== undefined) throw new DataError('payload', `--from is for verify\n\n${HELP}`)
  const only = parseOnly(values.only)
  const config = loadCommandConfig()
  const keepDays = parseKeepDays(values['keep-days'], config.publish.keepDays)
  const to = values.to ?? config.publish.to
  if (to === undefined) throw new DataError('payload', `name a folder with --to, or set PUBLISH_TO\n\n${HELP}`)
  const db = createDatabase(config.clickhouse, 'write')
  const target = openTarget(db, to, config.publish.s3)
  const stopping = new AbortController()
  let done: Promise<unknown> = Promise.resolve()
  onStopSignal(async () => {
    stopping.abort(new DataError('storage', 'stopped: the publication is unchanged, the next run continues'))
    process.exitCode = 130
    await done.catch(() => undefined)
  })
  try {
    await requireMigrated(db)
    const work = publish({
      ...{ db, target, keepDays, registry: await readRegistry(db), publicUrl: config.api.publicUrl },
      ...{ log: createLog('publish', 'warn'), signal: stopping.signal },
      onPartition: (path, rows) => console.error(`${path}: ${rows} rows`),
      ...(only === undefined ? {} : { only }),
    })
    done = work
    const outcome = await work
    const { written, unchanged, rows, bytes } = outcome
    if (values.json) console.log(JSON.stringify({ to: target.place, ...outcome }, null, 2))
    else
      console.log(
        `${target.place}: ${written.length} files written, ${unchanged} unchanged; ${rows} rows, ${(bytes / 1e6).toFixed(1)} MB`,
      )
  } finally {
    await db.close()
  }
}

if (isMain(import.meta.url)) runCommand(main)
