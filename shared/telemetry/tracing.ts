import { DiagLogLevel, diag } from '@opentelemetry/api'
import type { SpanExporter } from '@opentelemetry/sdk-trace-node'
import type { Config } from '../config/config.ts'
import { toReason } from '../errors.ts'
import type { Logger } from './log.ts'

export interface Tracing {
  /** Exports the remaining spans within `FLUSH_MS`. Never throws. */
  stop(): Promise<void>
}

/** A collector that does not respond must not delay the exit of a process. */
const FLUSH_MS = 1_000

/** An unreachable collector fails every few seconds; rare warnings are enough. */
const WARN_EVERY_MS = 10 * 60_000

const OFF: Tracing = { stop: async () => undefined }

/**
 * Starts OpenTelemetry tracing if the standard environment variables enable it; else the SDK is not loaded. The SDK's
 * classes read sampler, limits, batches, endpoints and resource from the environment. This function reads exporter and
 * protocol itself, so that only the selected ones are loaded.
 * @param service service name in traces, unless `OTEL_SERVICE_NAME` or `OTEL_RESOURCE_ATTRIBUTES` sets one.
 */
export async function startTracing(service: string, config: Pick<Config, 'tracing'>, log: Logger): Promise<Tracing> {
  if (!config.tracing.wanted) return OFF
  const warn = createWarning(log)
  const ignore = () => undefined
  const logger = { error: warn, warn, info: ignore, debug: ignore, verbose: ignore }
  diag.setLogger(logger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true })
  const { setGlobalErrorHandler, getStringListFromEnv } = await import('@opentelemetry/core')
  setGlobalErrorHandler((error) => warn(toExportReason(error)))
  const { BatchSpanProcessor, ConsoleSpanExporter, NodeTracerProvider, SimpleSpanProcessor } = await import(
    '@opentelemetry/sdk-trace-node'
  )
  const exporters = await createExporters(getStringListFromEnv('OTEL_TRACES_EXPORTER') ?? ['otlp'])
  const provider = new NodeTracerProvider({
    resource: await toResource(service),
    spanProcessors: exporters.map((exporter) =>
      exporter instanceof ConsoleSpanExporter ? new SimpleSpanProcessor(exporter) : new BatchSpanProcessor(exporter),
    ),
  })
  provider.register({ propagator: await toPropagator(getStringListFromEnv('OTEL_PROPAGATORS')) })
  log.info({ service }, 'tracing started')
  return {
    stop: async () => {
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(() => {
          warn(`the last spans were not exported within ${FLUSH_MS} ms`)
          resolve()
        }, FLUSH_MS)
      })
      const flushed = provider.shutdown().catch((error: unknown) => warn(toExportReason(error)))
      await Promise.race([flushed, late])
      clearTimeout(timer)
    },
  }
}

/** The resource attributes of this process. Attributes from the environment override the service name. */
async function toResource(service: string) {
  const { defaultResource, detectResources, envDetector, hostDetector, processDetector, resourceFromAttributes } =
    await import('@opentelemetry/resources')
  const detected = detectResources({ detectors: [envDetector, processDetector, hostDetector] })
  return defaultResource()
    .merge(resourceFromAttributes({ 'service.name': service }))
    .merge(detected)
}

async function createOtlpExporter(): Promise<SpanExporter> {
  const { getStringFromEnv } = await import('@opentelemetry/core')
  const ofTraces = getStringFromEnv('OTEL_EXPORTER_OTLP_TRACES_PROTOCOL')
  const protocol = ofTraces ?? getStringFromEnv('OTEL_EXPORTER_OTLP_PROTOCOL') ?? 'http/protobuf'
  if (protocol === 'grpc') return new (await import('@opentelemetry/exporter-trace-otlp-grpc')).OTLPTraceExporter()
  if (protocol === 'http/json') return new (await import('@opentelemetry/exporter-trace-otlp-http')).OTLPTraceExporter()
  if (protocol !== 'http/protobuf') diag.warn(`OTLP protocol ${protocol} is unknown: http/protobuf is used`)
  return new (await import('@opentelemetry/exporter-trace-otlp-proto')).OTLPTraceExporter()
}

const EXPORTERS: Readonly<Record<string, () => Promise<SpanExporter>>> = {
  otlp: createOtlpExporter,
  zipkin: async () => new (await import('@opentelemetry/exporter-zipkin')).ZipkinExporter(),
  console: async () => new (await import('@opentelemetry/sdk-trace-node')).ConsoleSpanExporter(),
}

/** The selected W3C propagators; both without a selection. */
async function toPropagator(names: readonly string[] | undefined) {
  const { CompositePropagator, W3CBaggagePropagator, W3CTraceContextPropagator } = await import('@opentelemetry/core')
  const all = { tracecontext: new W3CTraceContextPropagator(), baggage: new W3CBaggagePropagator() }
  for (const name of names ?? []) {
    if (name !== 'none' && !(name in all)) diag.warn(`OTEL_PROPAGATORS: ${name} is unknown`)
  }
  const propagators = Object.entries(all).filter(([name]) => names === undefined || names.includes(name))
  return new CompositePropagator({ propagators: propagators.map(([, propagator]) => propagator) })
}

/** Creates each named exporter once. Skips unknown names with a warning. */
async function createExporters(names: readonly string[]): Promise<SpanExporter[]> {
  const created = [...new Set(names)].flatMap((name) => {
    if (!Object.hasOwn(EXPORTERS, name)) diag.warn(`OTEL_TRACES_EXPORTER: ${name} is unknown`)
    return Object.hasOwn(EXPORTERS, name) ? [EXPORTERS[name]?.()] : []
  })
  return (await Promise.all(created)).filter((exporter) => exporter !== undefined)
}

function createWarning(log: Logger): (reason: string) => void {
  let warnedAt = Number.NEGATIVE_INFINITY
  return (reason) => {
    if (performance.now() - warnedAt < WARN_EVERY_MS) return
    warnedAt = performance.now()
    log.warn({ reason }, 'trace export failed; spans may be missing')
  }
}

/** If a host has several addresses and none responds, the error has a code and no message. */
function toExportReason(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return toReason(error) || String(code)
}
