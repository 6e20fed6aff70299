import { toBase } from './address.ts'
import { type Answer, toFacts } from './facts.ts'
import { ConnectionError, toProblemError, UnexpectedAnswerError } from './failure.ts'
import { type CachedAnswer, createMemory } from './memory.ts'
import { type Retries, withRetries } from './retry.ts'

/** Options of a client. */
export interface ConnectionOptions extends Partial<Retries> {
  /** The base URL of the service, including the path prefix of a proxy. */
  readonly baseUrl: string | URL
  /** Sent as `X-API-Key`. */
  readonly apiKey?: string | undefined
  /**
   * Size of the response cache in characters. The service sends a cached answer again only if it changed. 0 disables
   * the cache.
   */
  readonly memory?: number | undefined
  /**
   * Timeout of one attempt in milliseconds: for the whole answer, or for the headers of a download; 0 means no timeout.
   */
  readonly timeoutMs?: number | undefined
  /** Replaces the platform's `fetch`. */
  readonly fetch?: typeof fetch | undefined
}

/** Options of a single request. */
export interface RequestOptions {
  /** Aborts the request, its waits and its retries; the promise rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined
  /** Replaces the connection's timeout. */
  readonly timeoutMs?: number | undefined
}

export interface Connection {
  readonly base: URL
  /**
   * The answer at a URL: parsed JSON, or the text of an SVG image.
   * @throws ProblemError when the service returns an error, ConnectionError when there is no answer, each after the
   * last attempt; UnexpectedAnswerError immediately when another server answers.
   */
  answer(url: string, options?: RequestOptions): Promise<Answer<unknown>>
  /**
   * An answer with an unread body.
   * @throws as `answer`
   */
  download(url: string, options?: RequestOptions): Promise<Response>
  /**
   * Like `download`, with headers and without retries.
   * @throws as `answer`, immediately
   */
  open(url: string, headers: Readonly<Record<string, string>>, options?: RequestOptions): Promise<Response>
}

const MEMORY_CHARACTERS = 16_000_000
const RETRIES = 3
const LONGEST_WAIT_MS = 60_000
const TIMEOUT_MS = 60_000

/** After an abort the promise rejects with the signal's reason, otherwise with a ConnectionError. */
const connecting = <T>(url: string, signal: AbortSignal | undefined, response: Promise<T>): Promise<T> =>
  response.catch((error: unknown) => {
    throw signal?.aborted ? signal.reason : new ConnectionError(url, error)
  })

/** @throws ConnectionError if the answer is incomplete, UnexpectedAnswerError if it is neither JSON, an image, a feed nor a calendar. */
function toData(url: string, status: number, { text, type }: CachedAnswer): unknown {
  if (/^(?:(?:image\/svg|application\/atom)\+xml|text\/calendar)\b/.test(type)) return text
  if (!/^application\/(?:[\w.]+\+)?json\b/.test(type)) throw new UnexpectedAnswerError({ url, status, type, text })
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new ConnectionError(url, error)
  }
}

/** One attempt; ends with the request's signal, or with a ConnectionError after its timeout. */
async function withTimeout<T>(
  url: string,
  { signal, timeoutMs = TIMEOUT_MS }: RequestOptions,
  send: (signal: AbortSignal | undefined) => Promise<T>,
): Promise<T> {
  // A value beyond the maximum of a timer means no timeout.
  if (timeoutMs <= 0 || timeoutMs > 2_147_483_647) return send(signal)
  const timeout = new AbortController()
  const late = new ConnectionError(url, new Error(`No answer within ${timeoutMs} ms`))
  const timer = setTimeout(() => timeout.abort(late), timeoutMs)
  try {
    return await send(signal === undefined ? timeout.signal : AbortSignal.any([signal, timeout.signal]))
  } finally {
    clearTimeout(timer)
  }
}

/** Creates a connection that sends the API key, retries, and revalidates cached answers. */
export function createConnection(options: ConnectionOptions): Connection {
  const memory = createMemory(options.memory ?? MEMORY_CHARACTERS)
  const retries = { retries: options.retries ?? RETRIES, longestWaitMs: options.longestWaitMs ?? LONGEST_WAIT_MS }
  const key: Record<string, string> = options.apiKey === undefined ? {} : { 'X-API-Key': options.apiKey }

  const send = (url: string, headers: Readonly<Record<string, string>>, signal: AbortSignal | undefined) =>
    connecting(url, signal, (options.fetch ?? fetch)(url, { headers: { ...key, ...headers }, signal: signal ?? null }))

  const open: Connection['open'] = async (url, headers, { signal } = {}) => {
    const response = await send(url, headers, signal)
    if (!response.ok && response.status !== 304) throw await connecting(url, signal, toProblemError(response))
    return response
  }

  async function fetchAnswer(url: string, signal: AbortSignal | undefined): Promise<Answer<unknown>> {
    const cached = memory.get(url)
    const conditions: Record<string, string> = cached === undefined ? {} : { 'If-None-Match': cached.tag }
    const response = await open(url, { Accept: 'application/json, */*;q=0.5', ...conditions }, { signal })
    const facts = toFacts(response.headers)
    if (response.status === 304 && cached !== undefined) return { data: toData(url, response.status, cached), facts }
    const text = await connecting(url, signal, response.text())
    const received = { tag: facts.tag ?? '', text, type: response.headers.get('content-type') ?? '' }
    const data = toData(url, response.status, received)
    if (facts.tag !== undefined) memory.set(url, received)
    return { data, facts }
  }

  const retry = <T>(
    url: string,
    request: RequestOptions = {},
    one: (signal: AbortSignal | undefined) => Promise<T>,
  ): Promise<T> => {
    const limited = { ...request, timeoutMs: request.timeoutMs ?? options.timeoutMs }
    return withRetries(() => withTimeout(url, limited, one), retries, request.signal)
  }

  return {
    base: toBase(options.baseUrl),
    answer: (url, request) => retry(url, request, (signal) => fetchAnswer(url, signal)),
    download: (url, request) => retry(url, request, (signal) => open(url, {}, { signal })),
    open,
  }
}
