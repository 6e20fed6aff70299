import { parseConfig } from '../../shared/config/config.ts'
import { protocolTvl } from '../../shared/datasets/protocol-tvl.ts'
import { announceReady, runProgram } from '../../shared/process.ts'
import { createRedis } from '../../shared/queue/redis.ts'
import { ENTIRE_REGISTRY } from '../../shared/registry/entities.ts'
import { createDatabase } from '../../shared/store/store.ts'
import { createLog } from '../../shared/telemetry/log.ts'
import { createHttpClients } from '../../workers/http/client.ts'
import { defineJob } from '../../workers/job/define-job.ts'
import { createRunner } from '../../workers/run/runner.ts'
import { createRecomputation } from '../../workers/schedule/recompute.ts'
import { LONG_SLOT, POISON_SLOT } from './poison-slots.ts'
import { loadSmallRegistry } from './small-registry.ts'

const untilReleased = () => new Promise((resolve) => process.once('message', resolve))

const job = defineJob({
  name: 'tvl',
  cadence: '1h',
  dataset: protocolTvl,
  providers: [{ name: 'test', cost: 'free', covers: () => true, connect: () => undefined }],
  entities: () => [ENTIRE_REGISTRY],
  run: async ({ slot }) => {
    if (slot === POISON_SLOT) process.kill(process.pid, 'SIGKILL')
    if (slot === LONG_SLOT) {
      process.send?.({ isUnderWay: true })
      await untilReleased()
    }
    return []
  },
})

/** A worker of one dataset whose jobs behave as their slot specifies. */
async function main(): Promise<void> {
  const config = parseConfig(process.env)
  const log = createLog('worker', 'silent')
  const redis = createRedis(config.redis.url, log)
  const blocking = createRedis(config.redis.url, log, 'blocking')
  const db = createDatabase(config.clickhouse, 'write')
  const runner = createRunner(job, {
    config,
    log,
    redis,
    blocking,
    db,
    http: createHttpClients({ log }),
    recomputation: createRecomputation([], redis, config.redis.prefix, db),
    registry: loadSmallRegistry(),
    now: () => POISON_SLOT,
    redact: (text) => text,
    takeover: { lockMs: 4_000, checkMs: 500 },
  })
  await runner.waitUntilReady()
  // Sent after the replies to all earlier messages: the parent counts this worker.
  await redis.ping()
  announceReady({})
}

runProgram(main)
