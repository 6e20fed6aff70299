import { toUrl, type Values } from './address.ts'
import type { Connection } from './connection.ts'
import { ConnectionError } from './failure.ts'
import { toWaitMs, wait } from './retry.ts'
import type { operations } from './schema.ts'

type DatasetOf<Query> = Query extends { datasets?: (infer Name)[] } ? Name : never

/** A dataset of the service. */
export type Dataset = DatasetOf<NonNullable<operations['streamChanges']['parameters']['query']>>

/** Data was stored. Null means unknown: any data of the dataset may then have changed. */
export interface ChangeEvent {
  readonly type: 'change'
  /** The id to resume after this event. */
  readonly id: string
  readonly dataset: Dataset
  /** The time of the newest value, ISO 8601 UTC. */
  readonly asOf: string | null
  /** Number of affected tokens or DAOs. */
  readonly entities: number | null
  /** The affected time range, `to` exclusive. */
  readonly from: string | null
  readonly to: string | null
}

/** Change events may have been missed: any data may have changed. */
export interface ResetEvent {
  readonly type: 'reset'
  readonly id: string
}

export type StreamEvent = ChangeEvent | ResetEvent

export interface StreamOptions {
  /** Ends the stream; the iteration rejects with the signal's reason. Leaving a `for await` loop also ends it. */
  readonly signal?: AbortSignal | undefined
  /** The id of the last received event; the stream starts after it. */
  readonly lastEventId?: string | undefined
  /**
   * A connection without data for this time counts as broken, in milliseconds; the service sends a heartbeat every 15
   * seconds.
   */
  readonly silenceMs?: number | undefined
}

const SILENCE_MS = 45_000
const RETRY_MS = 2_000

/** A subscription lasts for days: errors of the service are temporary, errors of the request are not. */
const passes = (status: number) => status === 429 || status >= 500

interface Block {
  readonly id: string | undefined
  readonly retry: number | undefined
  readonly type: string
  readonly data: string | undefined
}

/** Parses a block of lines (HTML standard, "server-sent events"). */
function toBlock(text: string): Block {
  const fields = new Map<string, string>()
  for (const line of text.split('\n')) {
    const [, name = '', value = ''] = /^([^:]*):? ?(.*)$/.exec(line) ?? []
    const before = name === 'data' ? fields.get(name) : undefined
    fields.set(name, before === undefined ? value : `${before}\n${value}`)
  }
  const retry = fields.get('retry')
  return {
    id: fields.get('id'),
    retry: retry === undefined ? undefined : Number(retry),
    type: fields.get('event') ?? 'message',
    data: fields.get('data'),
  }
}

/** The blocks of one connection, until it ends, breaks or is silent for too long, also before the response. */
async function* connect(
  connection: Connection,
  url: string,
  id: string | undefined,
  { signal, silenceMs = SILENCE_MS }: StreamOptions,
): AsyncGenerator<Block, void, undefined> {
  const silence = new AbortController()
  const withTimeout = <T>(next: Promise<T>): Promise<T> => {
    const tooLong = new ConnectionError(url, new Error(`Nothing came for ${silenceMs} ms`))
    const timer = setTimeout(() => silence.abort(tooLong), silenceMs)
    return next.finally(() => clearTimeout(timer))
  }
  const either = signal === undefined ? silence.signal : AbortSignal.any([signal, silence.signal])
  const headers: Record<string, string> = id === undefined ? {} : { 'Last-Event-ID': id }
  const response = await withTimeout(
    connection.open(url, { Accept: 'text/event-stream', ...headers }, { signal: either }),
  )
  const reader = (response.body as ReadableStream<Uint8Array>).getReader()
  const decoder = new TextDecoder()
  let rest = ''
  try {
    for (;;) {
      const { value, done } = await withTimeout(reader.read())
      if (done) return
      const blocks = (rest + decoder.decode(value, { stream: true })).split('\n\n')
      rest = blocks.pop() ?? ''
      yield* blocks.map(toBlock)
    }
  } catch (error) {
    throw new ConnectionError(url, error)
  } finally {
    // A broken stream cannot be cancelled, and need not be.
    await reader.cancel().catch(() => undefined)
  }
}

/**
 * Change events as they happen. A broken connection is re-established from the last event, without a limit, so that no
 * event is lost or repeated.
 * @throws ProblemError when the service rejects the request itself, or the signal's reason.
 */
export async function* followChanges(
  connection: Connection,
  path: string,
  query: Values,
  options: StreamOptions = {},
): AsyncGenerator<StreamEvent, void, undefined> {
  const { signal } = options
  const url = toUrl(connection.base, path, query)
  let [id, retryMs, failures] = [options.lastEventId, RETRY_MS, 0]
  for (;;) {
    try {
      for await (const block of connect(connection, url, id, options)) {
        failures = 0
        id = block.id ?? id
        retryMs = block.retry ?? retryMs
        if (block.data !== undefined && (block.type === 'change' || block.type === 'reset'))
          yield { ...JSON.parse(block.data), type: block.type, id: id ?? '' }
      }
      await wait(retryMs, signal)
    } catch (error) {
      if (signal?.aborted) throw signal.reason
      const ms = toWaitMs(error, failures, passes)
      if (ms === undefined) throw error
      failures += 1
      await wait(Math.max(ms, retryMs), signal)
    }
  }
}
