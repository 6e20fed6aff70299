import { startTracing } from '../../shared/telemetry/tracing.ts'
import { type Collector, startCollector } from './collector.ts'
import { silent } from './silent.ts'

/** Traces this process permanently to a separate collector; closing the collector ends the tracing. */
export async function traceThisProcess(): Promise<Collector> {
  const collector = await startCollector()
  Object.assign(process.env, collector.env)
  const tracing = await startTracing('dao-data-test', { tracing: { wanted: true } }, silent)
  const close = async () => {
    await tracing.stop()
    await collector.close()
  }
  return { ...collector, close }
}
