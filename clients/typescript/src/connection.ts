import { toBase } from './address.ts'
import { type Answer, toFacts } from './facts.ts'
import { ConnectionError, toProblemError, UnexpectedAnswerError } from './failure.ts'
import { createMemory, type Kept } from './memory.ts'
import { type Retries, withRetries } from './retry.ts'

/** How a service is asked. */
export interface ConnectionOptions extends Partial<Retries> {
  /** Where the service is, with the path under which a proxy has it. */
  readonly baseUrl: string | URL
  /** Sent as `X-API-Key`. */
  readonly apiKey?: string | undefined
  /** Answers are kept up to so many characters in all, and sent again only where they changed; 0 keeps none. */
  readonly memory?: number | undefined
  /** How long one try waits, in milliseconds: for the whole answer, or for the head of a download; 0 waits for ever. */
  readonly timeoutMs?: number | undefined
  /** What is used instead of the platform's own. */
  readonly fetch?: typeof fetch | undefined
}

/** How a single request is asked. */
export interface RequestOptions {
  /** Ends the request, its waits and its tries; the promise is rejected with the signal's reason. */
  readonly signal?: AbortSignal | undefined
  /** In place of the connection's own. */
  readonly timeoutMs?: number | undefined
}

export interface Connection {
  readonly base: URL
  /**
   * The answer at an address: the JSON, or the text of another media type.
   * @throws ProblemError when the service refuses, ConnectionError when there is no answer, each after the last try;
   *   UnexpectedAnswerError at once when something else answers.
   */
  answer(url: string, options?: RequestOptions): Promise<Answer<unknown>>
  /** An answer whose body was not read yet. @throws as `answer` */
  download(url: string, options?: RequestOptions): Promise<Response>
  /** The same, asked once and with headers. @throws as `answer`, at once */
  open(url: string, headers: Readonly<Record<string, string>>, options?: RequestOptions): Promise<Response>
}

const MEMORY_CHARACTERS = 16_000_000
const RETRIES = 3
const LONGEST_WAIT_MS = 60_000
const TIMEOUT_MS = 60_000

/** What `fetch` says when a client ends its request is passed on; all else is that no answer came. */
const connecting = <T>(url: string, signal: AbortSignal | undefined, response: Promise<T>): Promise<T> =>
  response.catch((error: unknown) => {
    throw signal?.aborted ? signal.reason : new ConnectionError(url, error)
  })

/** @throws ConnectionError where the answer was cut short, UnexpectedAnswerError where it is neither JSON nor an image. */
function toData(url: string, status: number, { text, type }: Kept): unknown {
  if (type.startsWith('image/svg+xml')) return text
  if (!type.startsWith('application/json')) throw new UnexpectedAnswerError({ url, status, type, text })
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new ConnectionError(url, error)
  }
}

/** One try, ended by the signal of the request or, with a ConnectionError, by its timeout. */
async function withTimeout<T>(
  url: string,
  { signal, timeoutMs = TIMEOUT_MS }: RequestOptions,
  ask: (signal: AbortSignal | undefined) => Promise<T>,
): Promise<T> {
  // Longer than a timer can wait is for ever.
  if (timeoutMs <= 0 || timeoutMs > 2_147_483_647) return ask(signal)
  const timeout = new AbortController()
  const late = new ConnectionError(url, new Error(`No answer within ${timeoutMs} ms`))
  const timer = setTimeout(() => timeout.abort(late), timeoutMs)
  try {
    return await ask(signal === undefined ? timeout.signal : AbortSignal.any([signal, timeout.signal]))
  } finally {
    clearTimeout(timer)
  }
}

/** What asks a service: with its key, again where it is worth it, and without what is known already. */
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

  async function ask(url: string, signal: AbortSignal | undefined): Promise<Answer<unknown>> {
    const kept = memory.get(url)
    const known: Record<string, string> = kept === undefined ? {} : { 'If-None-Match': kept.tag }
    const response = await open(url, { Accept: 'application/json, image/svg+xml;q=0.5', ...known }, { signal })
    const facts = toFacts(response.headers)
    if (response.status === 304 && kept !== undefined) return { data: toData(url, response.status, kept), facts }
    const text = await connecting(url, signal, response.text())
    const came = { tag: facts.tag ?? '', text, type: response.headers.get('content-type') ?? '' }
    const data = toData(url, response.status, came)
    if (facts.tag !== undefined) memory.set(url, came)
    return { data, facts }
  }

  const again = <T>(
    url: string,
    request: RequestOptions = {},
    one: (signal: AbortSignal | undefined) => Promise<T>,
  ): Promise<T> => {
    const limited = { ...request, timeoutMs: request.timeoutMs ?? options.timeoutMs }
    return withRetries(() => withTimeout(url, limited, one), retries, request.signal)
  }

  return {
    base: toBase(options.baseUrl),
    answer: (url, request) => again(url, request, (signal) => ask(url, signal)),
    download: (url, request) => again(url, request, (signal) => open(url, {}, { signal })),
    open,
  }
}
