import { z } from 'zod'
import { parseConfig } from '../../shared/config/config.ts'
import { announceReady, runProgram } from '../../shared/process.ts'
import { createRedis } from '../../shared/queue/redis.ts'
import { createDatabase } from '../../shared/store/store.ts'
import { createLog } from '../../shared/telemetry/log.ts'
import { createMetrics } from '../../shared/telemetry/metrics.ts'
import { type Alerts, startAlerts } from '../../workers/alerts/alerts.ts'
import { loadFewDaos } from '../support/few-daos.ts'

const clock = z.object({ now: z.number() })

/** Evaluates rules and sends their messages. Each message of the parent sets the clock and enqueues the due jobs. */
async function main(): Promise<void> {
  const config = parseConfig(process.env)
  const log = createLog('worker', config.logLevel)
  let now = Number(process.argv[2])
  let alerts: Alerts | undefined
  process.on('message', (message) => {
    now = clock.parse(message).now
    void alerts?.tick()
  })
  alerts = await startAlerts(
    {
      ...{ config, log, registry: loadFewDaos(), now: () => now, metrics: createMetrics('worker') },
      ...{ db: createDatabase(config.clickhouse, 'write'), redis: createRedis(config.redis.url, log) },
      ...{ redact: (text: string) => text, takeover: { lockMs: 4_000, checkMs: 500 } },
    },
    String(config.alerts.file),
  )
  announceReady({})
}

runProgram(main)
