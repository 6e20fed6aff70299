import { runCommand } from '../../shared/command.ts'
import { readCommandLine } from '../../shared/command-line.ts'
import { loadCommandConfig } from '../../shared/config/config.ts'
import { DataError, toReason } from '../../shared/errors.ts'
import { isMain } from '../../shared/process.ts'
import { createRedis, requireRedis } from '../../shared/queue/redis.ts'
import { createDatabase, readRegistryOrFiles } from '../../shared/store/store.ts'
import { createLog } from '../../shared/telemetry/log.ts'
import type { ProviderContext } from '../job/define-job.ts'
import { type DayPlan, readDayPlans } from '../probe/plans.ts'
import { probeProviders } from '../probe/probe.ts'
import { createRecorder } from '../probe/recording.ts'
import { isWrong, toReport } from '../probe/report.ts'

const HELP = `npm run providers -- [--short] [--record <folder>] [--timeout <seconds>] [--json]

Sends each provider one small request per dataset, with the keys and hosts of the settings and the code that collects.
Prints for each whether it was reached, accepted the key and answered in the expected format; the rest of the plan, if the
provider reports it or the workers count it; a value; and the billing. Another table has the providers that collect each
dataset with these settings. Stores nothing. A full run sends about 80 requests for one chain, and buys one user and ten
posts of X for about six cents.

  --short             one request to each provider
  --record <folder>   saves the answers as files, without keys; the folder must be new or empty
  --timeout <seconds> time limit of one request (default: 30)
  --json
  --help

Exits with 1 if a configured provider does not answer as expected.`

async function main(): Promise<void> {
  const { values } = readCommandLine({
    options: {
      short: { type: 'boolean', default: false },
      record: { type: 'string' },
      timeout: { type: 'string', default: '30' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(HELP)
  const seconds = Number(values.timeout)
  if (!(seconds > 0)) throw new DataError('config', `--timeout: ${values.timeout} is no number of seconds`)
  const config = loadCommandConfig()
  const now = Date.now()
  const db = createDatabase(config.clickhouse, 'read')
  try {
    const probes = await probeProviders({
      config,
      registry: await readRegistryOrFiles(db, createLog('providers', 'warn')),
      db,
      log: createLog('providers', 'silent'),
      now,
      isShort: values.short,
      timeoutMs: seconds * 1000,
      signal: new AbortController().signal,
      record: values.record === undefined ? undefined : createRecorder(values.record, config, now),
    })
    console.log(values.json ? JSON.stringify(probes, null, 2) : toReport(probes, await readPlans({ config, db }, now)))
    if (probes.some(isWrong)) process.exitCode = 1
  } finally {
    await db.close()
  }
}

/** Returns an empty list and prints a message if Redis is unavailable: the rest of the report does not need it. */
async function readPlans({ config, db }: Pick<ProviderContext, 'config' | 'db'>, now: number): Promise<DayPlan[]> {
  const log = createLog('providers', 'silent')
  const redis = createRedis(config.redis.url, log)
  try {
    await requireRedis(redis)
    return await readDayPlans({ config, log, db }, redis, now)
  } catch (error) {
    console.error(`the rest of the plans that workers count is unknown: Redis is unavailable (${toReason(error)})`)
    return []
  } finally {
    redis.disconnect()
  }
}

if (isMain(import.meta.url)) runCommand(main)
