import { z } from 'zod'
import { problemBody } from '../../api/problem/problem.ts'
import { toNext } from '../support/next-page.ts'
import { createRandom } from '../support/random.ts'
import { compareAnswers } from './compare.ts'
import { type FuzzRequest, type RequestValues, toRequest } from './requests.ts'

/** The results: responses by status, and each request with an invalid response. */
export interface FuzzResult {
  readonly statuses: ReadonlyMap<number, number>
  readonly faults: readonly { readonly url: string; readonly fault: string }[]
  /** The number of clients that disconnected before their response. */
  readonly remaining: number
  /** The number of responses that the service aborted. */
  readonly aborted: number
}

/** Text of the engine, or a stack trace. */
const ENGINE_TEXT = /DB::|Code: \d+|[Cc]lick[Hh]ouse|SELECT |FROM `?\w+`? FINAL|node_modules|\bat \S+ \(.*:\d+:\d+\)/
const MAX_FAULTS = 50
/** Most responses take less time, so clients disconnect at any step of the computation. */
const LEAVES_WITHIN_MS = 30

/** The schema of a list whose records have only some of their members. */
function toSample(schema: z.ZodType): z.ZodType {
  if (schema instanceof z.ZodUnion) return z.union(schema.options.map((one) => toSample(one as z.ZodType)))
  if (schema instanceof z.ZodArray) return z.array(toSample(schema.element as z.ZodType))
  return schema instanceof z.ZodObject ? schema.partial() : schema
}

/** The fault of a response; undefined if it is valid. */
function judge({ route, url }: FuzzRequest, response: Response, body: Buffer): string | undefined {
  const type = response.headers.get('content-type') ?? ''
  if (response.status >= 500 && response.status !== 503) return `status ${response.status}: ${body.toString()}`
  if (response.status >= 400) {
    const { error, data } = problemBody.safeParse(JSON.parse(body.toString()))
    if (error !== undefined) return `a problem of another shape: ${z.prettifyError(error)}`
    return ENGINE_TEXT.test(`${data.detail} ${data.title}`) ? `engine text: ${data.detail}` : undefined
  }
  if (response.status !== 200) return `status ${response.status}`
  if (!type.startsWith('application/json')) return undefined
  const query = new URL(url, 'http://here').searchParams
  const selected = query.has('fields') || query.has('fields[]')
  const schema = selected ? toSample(route.response) : route.response
  const { error } = schema.safeParse(JSON.parse(body.toString()))
  return error === undefined ? undefined : `an answer that is not as documented: ${z.prettifyError(error)}`
}

/** Extracts values for later requests from a response. */
function learn(existing: RequestValues, { route }: FuzzRequest, response: Response, body: Buffer): void {
  const next = toNext(response.headers.get('link'))?.slice(1)
  if (next !== undefined) existing.next.set(route.path, next)
  if (existing.ids.length > 400 || !/^\/data\/(tokens|daos)$/.test(route.path) || response.status !== 200) return
  if (!(response.headers.get('content-type') ?? '').startsWith('application/json')) return
  for (const { _id, name } of JSON.parse(body.toString()) as { _id?: string; name?: string }[]) {
    if (_id !== undefined) existing.ids.push(_id)
    if (name !== undefined) existing.names.push(name)
  }
}

/** The response; or whether the client disconnected before its end, or the service aborted it after its status 200. */
async function sendRequest(url: string, remaining: AbortSignal | undefined) {
  let response: Response | undefined
  try {
    response = await fetch(url, { signal: remaining ?? null })
    return { response, body: Buffer.from(await response.arrayBuffer()) }
  } catch (error) {
    if (remaining?.aborted) return 'remaining'
    if (response?.status === 200) return 'aborted'
    throw error
  }
}

/**
 * Sends `requests` generated requests to an API, some concurrently, and checks each response. The only allowed 5xx
 * status is 503, problems and JSON have the documented shape, and no text of the engine is included. The same seed
 * gives the same requests if the responses are equal and requests are sequential. With `against`, both services get
 * each request and must return the same bytes. `disconnecting` is the share of clients that disconnect at a random time.
 * Rejects if the API is unreachable.
 */
export async function runFuzz(options: {
  url: string
  /** Another service over the same data, which must return the same responses. */
  against?: string
  requests: number
  seed: number
  concurrency: number
  disconnecting?: number
  /** Whether the service may abort a response that has begun, because its database breaks off. */
  mayAbort?: boolean
  now: number
  onProgress?: (done: number) => void
}): Promise<FuzzResult> {
  const { url, against, requests, seed, concurrency, disconnecting = 0, mayAbort = false, now, onProgress } = options
  const random = createRandom(seed)
  // A separate generator, so that disconnects do not change the requests of a seed.
  const moments = createRandom(seed + 1)
  const existing: RequestValues = { ids: [], names: [], next: new Map() }
  const statuses = new Map<number, number>()
  const faults: { url: string; fault: string }[] = []
  let [sent, remaining, aborted] = [0, 0, 0]
  const send = async (): Promise<void> => {
    while (sent < requests && faults.length < MAX_FAULTS) {
      sent += 1
      const request = toRequest(random, existing, now)
      const leaves = moments.chance(disconnecting) ? AbortSignal.timeout(moments.below(LEAVES_WITHIN_MS)) : undefined
      const answer = await sendRequest(url + request.url, leaves)
      onProgress?.(sent)
      if (answer === 'remaining') {
        remaining += 1
        continue
      }
      if (answer === 'aborted') {
        aborted += 1
        if (!mayAbort) faults.push({ url: request.url, fault: 'the response was aborted' })
        continue
      }
      const { response, body } = answer
      statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1)
      const own = judge(request, response, body)
      const fault = own ?? (against === undefined ? undefined : await compareAnswers(url, against, request.url))
      if (fault === undefined) learn(existing, request, response, body)
      else faults.push({ url: request.url, fault })
    }
  }
  await Promise.all(Array.from({ length: concurrency }, send))
  return { statuses, faults, remaining, aborted }
}
