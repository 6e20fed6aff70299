import { z } from 'zod'
import { startProviderServer } from '../provider-server.ts'

const value = z.object({
  stringValue: z.string().optional(),
  intValue: z.union([z.number(), z.string()]).optional(),
  boolValue: z.boolean().optional(),
  arrayValue: z.object({ values: z.array(z.object({ stringValue: z.string() })) }).optional(),
})
const attributes = z.array(z.object({ key: z.string(), value }))
const span = z.object({
  traceId: z.string(),
  spanId: z.string(),
  parentSpanId: z.string().optional(),
  name: z.string(),
  kind: z.number(),
  attributes,
  status: z.object({ code: z.number(), message: z.string().optional() }),
  events: z.array(z.object({ name: z.string(), attributes })),
})
const exported = z.object({
  resourceSpans: z.array(
    z.object({ resource: z.object({ attributes }), scopeSpans: z.array(z.object({ spans: z.array(span) })) }),
  ),
})

type Attributes = Record<string, unknown>

/** Kinds of spans by their numbers in the protocol. */
export const KIND = { server: 2, client: 3, producer: 4, consumer: 5 } as const

/** A received span. `failed` is the status ERROR. */
interface ArrivedSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string | undefined
  readonly name: string
  readonly kind: number
  readonly attributes: Attributes
  readonly failed: boolean
  readonly events: readonly { name: string; attributes: Attributes }[]
  readonly service: unknown
}

const ERROR = 2

function toAttributes(list: z.infer<typeof attributes>): Attributes {
  return Object.fromEntries(
    list.map(({ key, value: { stringValue, intValue, boolValue, arrayValue } }) => {
      const int = intValue === undefined ? undefined : Number(intValue)
      return [key, stringValue ?? int ?? boolValue ?? arrayValue?.values.map((item) => item.stringValue)]
    }),
  )
}

export type Collector = Awaited<ReturnType<typeof startCollector>>

/** A collector of OpenTelemetry's protocol over HTTP with JSON bodies, which stores what it receives. */
export async function startCollector() {
  const spans: ArrivedSpan[] = []
  const bodies: string[] = []
  const waiting = new Set<() => void>()
  const take = (body: string) => {
    bodies.push(body)
    for (const { resource, scopeSpans } of exported.parse(JSON.parse(body)).resourceSpans) {
      const service = toAttributes(resource.attributes)['service.name']
      for (const one of scopeSpans.flatMap((scope) => scope.spans)) {
        const { traceId, spanId, name, kind } = one
        const events = one.events.map((event) => ({ name: event.name, attributes: toAttributes(event.attributes) }))
        const parentSpanId = one.parentSpanId || undefined
        const failed = one.status.code === ERROR
        spans.push({
          ...{ traceId, spanId, parentSpanId, name, kind, failed, events, service },
          attributes: toAttributes(one.attributes),
        })
      }
    }
    for (const check of waiting) check()
  }
  const server = await startProviderServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      take(Buffer.concat(chunks).toString())
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
    })
  })
  return {
    /** The standard variables that export a process's traces to this collector soon after each span ends. */
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: server.baseUrl,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_BSP_SCHEDULE_DELAY: '50',
    },
    spans,
    /** All requests, valid or not. */
    requests: server.requests,
    /** All received bodies as text. */
    text: () => bodies.join('\n'),
    /** Resolves with the first matching span once it is received. */
    until: (fits: (span: ArrivedSpan) => boolean): Promise<ArrivedSpan> =>
      new Promise((resolve) => {
        const check = () => {
          const found = spans.find(fits)
          if (found === undefined) return
          waiting.delete(check)
          resolve(found)
        }
        waiting.add(check)
        check()
      }),
    childrenOf: (parent: ArrivedSpan) => spans.filter(({ parentSpanId }) => parentSpanId === parent.spanId),
    close: server.close,
  }
}
