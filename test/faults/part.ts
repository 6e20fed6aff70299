import { createDatabase } from '../../shared/clickhouse.ts'
import { loadConfig } from '../../shared/config.ts'
import { createLog } from '../../shared/log.ts'
import { announceReady, onStopSignal, runProgram } from '../../shared/process.ts'
import { createQueue } from '../../shared/queues.ts'
import { createRedis } from '../../shared/redis.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { createFollowUps } from '../../workers/follow-ups.ts'
import prices from '../../workers/jobs/prices.ts'
import { jobs } from '../../workers/jobs.ts'
import { createHttpClients } from '../../workers/providers/http.ts'
import { createRunner } from '../../workers/runner.ts'
import { startScheduler } from '../../workers/scheduler.ts'
import { createFastClock } from './fast-clock.ts'

/** A worker or a scheduler of price slots on a clock that runs fast: `part.ts worker|scheduler <started at> <speed>`. */
async function main(): Promise<void> {
  const [role, startedAt, speed] = process.argv.slice(2)
  const now = createFastClock(Number(startedAt), Number(speed))
  const config = loadConfig()
  const log = createLog(String(role), config.logLevel)
  const registry = loadRegistry()
  const db = createDatabase(config.clickhouse, 'write')
  const redis = createRedis(config.redis.url, log)
  const blocking = createRedis(config.redis.url, log, 'blocking')
  if (role === 'worker') {
    const http = createHttpClients({ log, backoffMs: 1 })
    const followUps = createFollowUps(jobs, redis, config.redis.prefix)
    const runner = createRunner(prices, { config, http, db, redis, blocking, followUps, registry, log, now })
    await runner.waitUntilReady()
    onStopSignal(() => runner.close())
  } else {
    const queue = createQueue('prices', redis, config.redis.prefix)
    const everySecond = { '5m': '* * * * * *', '1h': '* * * * * *', '1d': '* * * * * *' }
    const context = { db, redis, prefix: config.redis.prefix, registry, log, now }
    const scheduler = startScheduler([{ job: prices, queue }], context, everySecond)
    onStopSignal(() => scheduler.stop())
  }
  announceReady({})
}

runProgram(main)
