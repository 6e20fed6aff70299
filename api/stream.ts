import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { DataError } from '../shared/errors.ts'
import { isKnownTo, toEntityTag, toTagValue } from './conditional.ts'
import type { StreamAnswer } from './define.ts'
import { chooseEncoding, createEncoder } from './encoding.ts'
import { frame } from './frame.ts'
import { FIXED_HEADERS, type FlatHeaders } from './headers.ts'
import { toUnavailable } from './problem/problem.ts'
import { FORMATS } from './records/formats.ts'
import { type Exchange, toMomentHeaders } from './send.ts'

/** Most long answers of an app on their way at once: each holds a connection to the database. */
const MAX_STREAMS = 16

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
      response.writeHead(200, all())
      const encoder = createEncoder(encoding)
      const framed = frame(source, answer)
      await (encoder === undefined ? pipeline(framed, response) : pipeline(framed, encoder, response))
    } finally {
      streams--
      response.off('close', leave)
      left.abort()
    }
  }
}
