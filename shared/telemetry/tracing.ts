import { DiagLogLevel, diag } from '@opentelemetry/api'
import type { SpanExporter } from '@opentelemetry/sdk-trace-node'
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
 * SDK is even loaded. The SDK's classes read their settings from the environment themselves: sampler, limits, batches,
 * endpoints, resource. Which exporter and protocol are wanted is read here, so that only those are loaded.
 * @param service what traces call this process, unless `OTEL_SERVICE_NAME` or `OTEL_RESOURCE_ATTRIBUTES` does.
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
          warn(`the last spans were not taken within ${FLUSH_MS} ms`)
          resolve()
        }, FLUSH_MS)
      })
      const flushed = provider.shutdown().catch((error: unknown) => warn(toExportReason(error)))
      await Promise.race([flushed, late])
      clearTimeout(timer)
    },
  }
}

/** What traces say of this process. What the environment says is laid over the service's own name. */
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

/** W3C's headers of a trace, those of them that are named; both where none is. */
async function toPropagator(names: readonly string[] | undefined) {
  const { CompositePropagator, W3CBaggagePropagator, W3CTraceContextPropagator } = await import('@opentelemetry/core')
  const all = { tracecontext: new W3CTraceContextPropagator(), baggage: new W3CBaggagePropagator() }
  for (const name of names ?? []) {
    if (name !== 'none' && !(name in all)) diag.warn(`OTEL_PROPAGATORS: ${name} is unknown`)
  }
  const propagators = Object.entries(all).filter(([name]) => names === undefined || names.includes(name))
  return new CompositePropagator({ propagators: propagators.map(([, propagator]) => propagator) })
}

/** The exporters of these names, each once. An unknown one is told and left out. */
async function createExporters(names: readonly string[]): Promise<SpanExporter[]> {
  const known = [...new Set(names)].flatMap((name) => {
    if (!Object.hasOwn(EXPORTERS, name)) diag.warn(`OTEL_TRACES_EXPORTER: ${name} is unknown`)
    return Object.hasOwn(EXPORTERS, name) ? [EXPORTERS[name]?.()] : []
  })
  return (await Promise.all(known)).filter((exporter) => exporter !== undefined)
}

function createWarning(log: Logger): (reason: string) => void {
  let warnedAt = Number.NEGATIVE_INFINITY
  return (reason) => {
    if (performance.now() - warnedAt < WARN_EVERY_MS) return
    warnedAt = performance.now()
    log.warn({ reason }, 'tracing has trouble; spans may be lost')
  }
}

/** When a host has several addresses and none answers, the error has a code and no message. */
function toExportReason(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return toReason(error) || String(code)
}
