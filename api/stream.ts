import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { DataError } from '../shared/errors.ts'
import { isKnownTo, toEntityTag, toTagValue } from './conditional.ts'
import type { StreamAnswer } from './define.ts'
import { chooseEncoding, createEncoder } from './encoding.ts'
import { DataChanged, frame } from './frame.ts'
import { FIXED_HEADERS, type FlatHeaders } from './headers.ts'
import { toUnavailable } from './problem/problem.ts'
import { FORMATS } from './records/formats.ts'
import { type Exchange, toMomentHeaders } from './send.ts'

/** Most long answers of an app on their way at once: each holds a connection to the database. */
const MAX_STREAMS = 16

/** So much of an answer is read before its head is sent. A shorter one is known to be whole then, or is made anew. */
const READ_AHEAD_BYTES = 256 * 1024

async function readAhead(framed: AsyncGenerator<Buffer>): Promise<Buffer[]> {
  const read: Buffer[] = []
  try {
    for (let bytes = 0; bytes < READ_AHEAD_BYTES; ) {
      const { done, value } = await framed.next()
      if (done) break
      read.push(value)
      bytes += value.length
    }
  } catch (cause) {
    if (cause instanceof DataChanged) throw cause
    throw new DataError('storage', 'ClickHouse broke off near the beginning of an answer', { cause })
  }
  return read
}

async function* join(read: readonly Buffer[], rest: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  yield* read
  yield* rest
}

/** Opens an answer and waits for its first byte: a query that fails at once still gets a proper problem. */
export async function openStream(answer: StreamAnswer, signal: AbortSignal): Promise<Readable> {
  try {
    const source = await answer.open(signal)
    // An empty answer may be at its end before anybody looks: then there is nothing to read, and no word of it.
    await Promise.race(['readable', 'end'].map((event) => once(source, event, { signal })))
    return source
  } catch (cause) {
    if (cause instanceof DataError) throw cause
    throw new DataError('storage', 'ClickHouse broke off before the first byte of an answer', { cause })
  }
}

type SendStream = (
  exchange: Exchange,
  answer: StreamAnswer,
  headers: FlatHeaders,
  moment: { now: number; staleAt: number | null },
) => Promise<void>

/**
 * Sends long answers as ClickHouse writes them, at the pace of the client. The query ends when the client leaves, and the
 * response breaks off when the query fails or its data changed on the way.
 * @throws DataChanged before anything is sent, when the data of a short answer changed while it was read.
 */
export function createStreaming(): SendStream {
  let streams = 0
  return async (exchange, answer, headers, moment) => {
    const { request, response } = exchange
    const isPacked = FORMATS[answer.format ?? 'json'].isPacked
    const encoding = isPacked ? 'identity' : chooseEncoding(request.headers['accept-encoding'])
    const tag = toTagValue(answer.digest)
    const all = () => [
      ...FIXED_HEADERS,
      ...headers,
      ...['ETag', toEntityTag(tag, encoding)],
      ...toMomentHeaders(exchange, moment.staleAt, moment.now, 'made'),
      ...exchange.extra,
      ...(encoding === 'identity' ? [] : ['Content-Encoding', encoding]),
    ]
    if (isKnownTo(request.headers['if-none-match'], tag)) return void response.writeHead(304, all()).end()
    if (request.method === 'HEAD') return void response.writeHead(200, all()).end()
    if (streams >= MAX_STREAMS) throw toUnavailable('Too many long answers are on their way at once.')
    const left = new AbortController()
    const leave = () => left.abort()
    response.once('close', leave)
    streams++
    try {
      const source = await openStream(answer, left.signal)
      const rest = frame(source, answer)
      const framed = join(await readAhead(rest), rest)
      response.writeHead(200, all())
      const encoder = createEncoder(encoding)
      await (encoder === undefined ? pipeline(framed, response) : pipeline(framed, encoder, response))
    } finally {
      streams--
      response.off('close', leave)
      left.abort()
    }
  }
}
