import { DiagLogLevel, diag } from '@opentelemetry/api'
import type { Config } from '../config/config.ts'
import { toReason } from '../errors.ts'
import type { Logger } from './log.ts'

export interface Tracing {
  /** Sends what is still unsent, for as long as `FLUSH_MS`. Never throws. */
  stop(): Promise<void>
}

/** A collector that does not answer must not keep a process from ending. */
const FLUSH_MS = 1_000

/** A collector that is away fails every few seconds; once in a while is enough to say so. */
const WARN_EVERY_MS = 10 * 60_000

const OFF: Tracing = { stop: async () => undefined }

/**
 * Starts OpenTelemetry tracing of this process when its standard environment variables ask for it; else nothing of the
 * SDK is even loaded. The SDK reads all its settings from the environment itself: exporter, protocol, sampler, resource.
 * Only traces are sent: metrics stay with Prometheus and logs with standard error.
 * @param service what traces call this process, unless `OTEL_SERVICE_NAME` or `OTEL_RESOURCE_ATTRIBUTES` does.
 */
export async function startTracing(service: string, config: Pick<Config, 'tracing'>, log: Logger): Promise<Tracing> {
  if (!config.tracing.wanted) return OFF
  const { NodeSDK, core, resources } = await import('@opentelemetry/sdk-node')
  const named = resources.resourceFromAttributes({ 'service.name': service })
  const sdk = new NodeSDK({
    // What the environment says of the resource is laid over this one.
    resource: resources.defaultResource().merge(named),
    metricReaders: [],
    logRecordProcessors: [],
  })
  const warn = createWarning(log)
  const ignore = () => undefined
  const logger = { error: warn, warn, info: ignore, debug: ignore, verbose: ignore }
  diag.setLogger(logger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true })
  core.setGlobalErrorHandler((error) => warn(toExportReason(error)))
  sdk.start()
  log.info({ service }, 'tracing started')
  return {
    stop: async () => {
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(() => {
          warn(`the last spans were not taken within ${FLUSH_MS} ms`)
          resolve()
        }, FLUSH_MS)
      })
      const flushed = sdk.shutdown().catch((error: unknown) => warn(toExportReason(error)))
      await Promise.race([flushed, late])
      clearTimeout(timer)
    },
  }
}

function createWarning(log: Logger): (reason: string) => void {
  let warnedAt = Number.NEGATIVE_INFINITY
  return (reason) => {
    if (performance.now() - warnedAt < WARN_EVERY_MS) return
    warnedAt = performance.now()
    log.warn({ reason }, 'tracing has trouble; spans may be lost')
  }
}

/** A name with several addresses fails with an error that has a code and no message. */
function toExportReason(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return toReason(error) || String(code)
}
