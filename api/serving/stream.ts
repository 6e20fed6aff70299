import type { IncomingMessage, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { DataError } from '../../shared/errors.ts'
import type { StreamAnswer } from '../answers/answer.ts'
import { FORMATS } from '../answers/formats.ts'
import { DataChanged, openFramed } from '../answers/frame.ts'
import { chooseEncoding, type Encoding } from '../http/accept.ts'
import { isKnownTo, toEntityTag, toTagValue } from '../http/conditional.ts'
import { createEncoder } from '../http/encoding.ts'
import { FIXED_HEADERS } from '../http/headers.ts'
import { type ByteRange, isSameAs, toByteRange } from '../http/range.ts'
import { Problem, toUnavailable } from '../problem/problem.ts'
import type { Exchange } from '../route/exchange.ts'
import { breakOff } from './break-off.ts'
import type { Asker } from './lines.ts'
import type { Leave, Queue } from './queue.ts'
import type { Head } from './ready.ts'
import { checkIfMatch, toMomentHeaders, toPart, toPartHeaders } from './send.ts'
import type { Readers } from './slow-readers.ts'
import type { Spools } from './spool.ts'
import type { WholeFile, WholeFiles } from './whole-files.ts'

/**
 * Most long answers that ClickHouse has not written to their end. Where there is room on the disk that is a matter of
 * moments, else it lasts as long as the client reads. 64 of them, all slow, take ClickHouse up to 2.2 GB, about half of
 * what it has by default, and more than half of the reader's quota of execution time. That leaves enough for all other
 * requests; twice as many would not.
 */
const MAX_STATEMENTS = 64
/** Most long answers on their way at once: each holds memory and perhaps a file. */
const MAX_DOWNLOADS = 256
/**
 * Most of them that one client has, so that others find places while it reads all of its own slowly. Of statements there is
 * no such share: only where the disk has no room are they as slow as their clients, and sixty-four slow readers of one
 * address are then served like any.
 */
const MAX_OF_CLIENT = 128
/** When a client may have one more, in seconds, unless one of its others ends before. */
const RETRY_AFTER = '10'

/**
 * So much of an answer is read before its head is sent. A shorter one is known to be whole by then, or is made again.
 */
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

async function* join(read: Buffer[], rest: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  // Bytes that were sent are let go at once: the rest may take minutes.
  while (read.length > 0) yield read.shift() as Buffer
  yield* rest
}

/** Most bytes of one write, so that it can be seen how fast a client takes them. */
const WRITE_BYTES = 64 * 1024

/** The bytes in small writes. `onFailure` hears of failures of the answer itself, and not of those of the client. */
async function* toWrites(
  framed: AsyncGenerator<Buffer>,
  left: AbortSignal,
  onFailure: (error: unknown) => void,
): AsyncGenerator<Buffer> {
  try {
    for await (const bytes of framed) {
      for (let at = 0; at < bytes.length; at += WRITE_BYTES) yield bytes.subarray(at, at + WRITE_BYTES)
    }
  } catch (error) {
    if (!left.aborted) onFailure(error)
    throw error
  }
}

export type SendStream = (
  exchange: Exchange,
  asker: Asker,
  answer: StreamAnswer,
  head: Head,
  now: number,
  left: AbortSignal,
) => Promise<void>

/** Places for the responses of long answers, so many in all and so many for a client; without that, as for all. */
function createDownloadPlaces(readers: Readers, most: number, perClient = most) {
  const taken = new Map<ServerResponse, string>()
  /** Closes the slowest of these; tells whether one of them was slow. */
  const makeRoom = (among: Iterable<ServerResponse>): boolean => {
    const slowest = readers.closeSlowest(among)
    return slowest !== undefined && taken.delete(slowest)
  }
  return {
    /**
     * @throws Problem `rate_limited` when the client has all of its places, `unavailable` when all are taken; and none of
     * those who read is slow.
     */
    take: (response: ServerResponse, client: string) => {
      const own = [...taken].flatMap(([one, its]) => (its === client ? [one] : []))
      if (own.length >= perClient && !makeRoom(own)) {
        const detail = `${own.length} long answers of yours are on their way: read them first.`
        throw new Problem('rate_limited', detail, { headers: { 'Retry-After': RETRY_AFTER } })
      }
      if (taken.size >= most && !makeRoom(taken.keys()))
        throw toUnavailable('Too many long answers are on their way at once.')
      taken.set(response, client)
    },
    leave: (response: ServerResponse) => taken.delete(response),
  }
}

/** Whether a request asks for a part, and for one of these bytes. */
const isPartWanted = ({ headers }: IncomingMessage, tag: string): boolean =>
  toByteRange(headers.range, Number.POSITIVE_INFINITY) !== undefined &&
  isSameAs(headers['if-range'], toEntityTag(tag, 'identity'))

/** Sends a file, or a part of it; to HEAD, only how long it is. */
async function sendWhole(
  { request, response }: Exchange,
  whole: WholeFile,
  part: ByteRange | undefined,
  headers: string[],
): Promise<void> {
  const range = part ?? { start: 0, end: whole.length - 1 }
  const lengths = part === undefined ? ['Content-Length', String(whole.length)] : toPartHeaders(part, whole.length)
  response.writeHead(part === undefined ? 200 : 206, headers.concat(lengths))
  if (request.method === 'HEAD') response.end()
  else await pipeline(whole.read(range), response)
}

interface StreamingOptions {
  readonly readers: Readers
  readonly spools: Spools
  /** For those that are read in parts. */
  readonly files: WholeFiles
  /** For those that ClickHouse is to write. */
  readonly queue: Queue
}

/** In which form an answer goes to a client: how it is packed, and whether it is made whole first. */
function toForm({ request }: Exchange, { format, digest }: StreamAnswer) {
  const { isPacked, isBinary } = FORMATS[format ?? 'json']
  const hasRange = isBinary && request.headers.range !== undefined
  const encoding = isPacked || hasRange ? 'identity' : chooseEncoding(request.headers['accept-encoding'])
  const tag = toTagValue(digest)
  const isWhole = isBinary && encoding === 'identity' && (request.method === 'HEAD' || isPartWanted(request, tag))
  return { encoding, tag, isWhole }
}

/**
 * Sends long answers as ClickHouse writes them. What a slow client has not taken waits on the disk, so that the
 * statement ends early; where there is no room, it goes at the pace of the client. The query ends when the client leaves,
 * and the response breaks off when the query fails, or its data changed on the way and it is no snapshot. Where there
 * are too many, of all or of one client, the slowest is closed in favour of a new one.
 * @throws DataChanged before anything is sent, when the data changed while a short answer was read, or before a snapshot;
 * Problem `unavailable` when too many wait, `rate_limited` when too many are one client's; the reason of `left` when the client leaves.
 */
export function createStreaming({ readers, spools, files, queue }: StreamingOptions): SendStream {
  const downloads = createDownloadPlaces(readers, MAX_DOWNLOADS, MAX_OF_CLIENT)
  const statements = createDownloadPlaces(readers, MAX_STATEMENTS)
  const deliver = async (
    { response }: Exchange,
    { asker, answer, left }: { asker: Asker; answer: StreamAnswer; left: AbortSignal },
    { encoding, toHeaders }: { encoding: Encoding; toHeaders: () => string[] },
  ) => {
    const over = new AbortController()
    let leaveQueue: Leave = () => {}
    let rest: AsyncGenerator<Buffer> | undefined
    const ended = () => {
      leaveQueue()
      statements.leave(response)
    }
    // However the response ends, `left` is aborted too. Who failed is told by what came first: the answer or the
    // client.
    let failure: unknown
    try {
      leaveQueue = await queue.enter(asker, left).turn
      statements.take(response, asker.client)
      const opened = await openFramed(answer, AbortSignal.any([left, over.signal]))
      rest = spools.through(opened, { blocked: leaveQueue, ended })
      const framed = toWrites(join(await readAhead(rest), rest), left, (error) => {
        failure = error
        breakOff(response)
      })
      response.writeHead(200, toHeaders())
      const encoder = createEncoder(encoding)
      await (encoder === undefined ? pipeline(framed, response) : pipeline(framed, encoder, response))
    } catch (error) {
      throw failure ?? (left.aborted ? left.reason : error)
    } finally {
      over.abort()
      ended()
      // Where the client left before the first write nobody else ends it, and its file would stay open. Not waited for: places
      // are free at once.
      void rest?.return(undefined)
    }
  }
  return async (exchange, asker, answer, head, now, left) => {
    left.throwIfAborted()
    const { request, response } = exchange
    const { encoding, tag, isWhole } = toForm(exchange, answer)
    const toHeaders = () => [
      ...FIXED_HEADERS,
      ...head.headers,
      ...['ETag', toEntityTag(tag, encoding)],
      ...toMomentHeaders(exchange, head, now, 'made'),
      ...exchange.extra,
      ...(encoding === 'identity' ? [] : ['Content-Encoding', encoding]),
    ]
    checkIfMatch(request, tag)
    if (isKnownTo(request.headers['if-none-match'], tag)) return void response.writeHead(304, toHeaders()).end()
    // Readers of remote Parquet and Arrow ask HEAD for a length; of other tables it needs no statement.
    if (request.method === 'HEAD' && !isWhole) return void response.writeHead(200, toHeaders()).end()
    downloads.take(response, asker.client)
    try {
      const open = (signal: AbortSignal) => openFramed(answer, signal)
      const whole = isWhole ? await files.get(tag, asker, open, left) : undefined
      if (whole !== undefined) {
        const part = toPart(request, toEntityTag(tag, 'identity'), whole.length)
        return await sendWhole(exchange, whole, part, toHeaders())
      }
      if (request.method === 'HEAD') return void response.writeHead(200, toHeaders()).end()
      await deliver(exchange, { asker, answer, left }, { encoding, toHeaders })
    } finally {
      downloads.leave(response)
    }
  }
}
