import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable, type Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { LRUCache } from 'lru-cache'
import { DataError } from '../../shared/errors.ts'
import type { Admission, ClientKey, Release } from '../admission/admission.ts'
import { type AssembledBody, DataChanged, FORMATS, openFramed } from '../formats/formats.ts'
import { breakOff } from '../http/break-off.ts'
import { FIXED_HEADERS } from '../http/headers.ts'
import {
  chooseEncoding,
  type Encoding,
  isSameAs,
  matchesTag,
  toByteRange,
  toEntityTag,
  toTagValue,
} from '../http/negotiation.ts'
import type { RequestContext } from '../route/request-context.ts'
import type { AnswerFiles } from './answer-files.ts'
import type { Compression } from './compression.ts'
import type { Head } from './ready-answer.ts'
import { checkIfMatch, type LongAnswer, toPart, toRequestHeaders } from './respond.ts'
import { sendFile } from './send-file.ts'
import type { Spools } from './spool.ts'

/**
 * Bytes of an answer that are read before its headers are sent. A shorter answer is complete by then, or is made again.
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
  // Sent bytes are released immediately: the rest may take minutes.
  while (read.length > 0) yield read.shift() as Buffer
  yield* rest
}

/** Maximum bytes per write, so that the client's reading speed can be measured. */
const WRITE_BYTES = 64 * 1024

interface WriteCallbacks {
  /** Receives failures of the answer, not disconnects of the client. */
  failed(error: unknown): void
  /** Receives the bytes of the complete answer, after the last of them was read. */
  ended(length: number): void
}

/** Splits the bytes into small writes. */
async function* toWrites(
  framed: AsyncGenerator<Buffer>,
  disconnected: AbortSignal,
  callbacks: WriteCallbacks,
): AsyncGenerator<Buffer> {
  let length = 0
  try {
    for await (const bytes of framed) {
      length += bytes.length
      for (let at = 0; at < bytes.length; at += WRITE_BYTES) yield bytes.subarray(at, at + WRITE_BYTES)
    }
    callbacks.ended(length)
  } catch (error) {
    if (!disconnected.aborted) callbacks.failed(error)
    throw error
  }
}

export type SendStream = (
  context: RequestContext,
  client: ClientKey,
  answer: LongAnswer,
  head: Head,
  now: number,
  disconnected: AbortSignal,
  /** Charges the client before a statement starts. */
  charge?: () => Promise<void>,
) => Promise<void>

/** Whether a request selects a range of this representation. */
const selectsRange = ({ headers }: IncomingMessage, tag: string): boolean =>
  toByteRange(headers.range, Number.POSITIVE_INFINITY) !== undefined &&
  isSameAs(headers['if-range'], toEntityTag(tag, 'identity'))

/** The encoding of an answer, and how its compression stage is created; undefined for identity. */
interface Stages {
  readonly encoding: Encoding
  readonly createStage: () => Transform | undefined
}

/** Sends a body at the client's speed: its parts are in memory, in gzip. */
async function sendAssembled(
  body: AssembledBody,
  { encoding, createStage }: Stages,
  response: ServerResponse,
): Promise<void> {
  const encoder = encoding === 'gzip' ? undefined : createStage()
  const parts = Readable.from(body.write(encoding === 'gzip' ? 'gzip' : 'identity'), { objectMode: false })
  await (encoder === undefined ? pipeline(parts, response) : pipeline(parts, encoder, response))
}

interface StreamingOptions {
  readonly spools: Spools
  readonly compression: Pick<Compression, 'createStage'>
  /** For answers that are read in ranges. */
  readonly files: AnswerFiles
  readonly admission: Pick<Admission, 'clientKeyOf' | 'downloads' | 'longAnswers' | 'statements' | 'turns'>
}

/** Maximum number of long answers whose length is known. */
const MAX_LENGTHS = 10_000

/** How an answer is sent: its encoding, its tag, and whether its file is used, which is written first if there is none. */
function toForm({ request }: RequestContext, answer: LongAnswer, files: AnswerFiles) {
  const { isPacked, isBinary } = FORMATS[answer.format ?? 'json']
  const hasRange = isBinary && request.headers.range !== undefined
  const encoding = isPacked || hasRange ? 'identity' : chooseEncoding(request.headers['accept-encoding'])
  const tag = 'assembled' in answer ? answer.assembled.tag : toTagValue(answer.digest)
  const needsFile = request.method === 'HEAD' || selectsRange(request, tag)
  const usesFile = isBinary && encoding === 'identity' && (needsFile || files.has(tag))
  return { encoding, tag, usesFile }
}

/**
 * Sends long answers while ClickHouse writes them. Bytes that a slow client has not read wait on the disk, so that the
 * statement ends early. Without disk space the statement runs at the client's speed. The query ends when the client
 * disconnects. The response is aborted when the query fails, or when its data changes before the end and it is no
 * snapshot. If there are too many answers, in total or of one client, the slowest one is closed in favour of a new one.
 * @throws DataChanged if the data changed while a short answer was read, or before a snapshot; no byte has been sent
 * then. Problem `unavailable` if too many requests wait, `rate_limited` if one client has too many. The reason of
 * `disconnected` if the client disconnects.
 */
export function createStreaming({ spools, compression, files, admission }: StreamingOptions): SendStream {
  const { downloads, longAnswers, statements } = admission
  /** Lengths in bytes without an encoding, by tag: `HEAD` needs no statement after the answer was made once. */
  const lengths = new LRUCache<string, number>({ max: MAX_LENGTHS })
  const deliver = async (
    { response }: RequestContext,
    { client, answer, disconnected }: { client: ClientKey; answer: LongAnswer; disconnected: AbortSignal },
    { encoding, tag, toHeaders }: { encoding: Encoding; tag: string; toHeaders: () => string[] },
  ) => {
    const over = new AbortController()
    const createStage = () =>
      encoding === 'identity' ? undefined : compression.createStage(encoding, client, disconnected)
    let releaseSlot: Release = () => {}
    let releaseStatement: Release = () => {}
    let rest: AsyncGenerator<Buffer> | undefined
    const ended = () => {
      releaseSlot()
      releaseStatement()
    }
    // `disconnected` is aborted however the response ends. The first event decides whether the answer or the client failed.
    let failure: unknown
    try {
      if ('assembled' in answer) {
        response.writeHead(200, toHeaders())
        return await sendAssembled(answer.assembled, { encoding, createStage }, response)
      }
      releaseSlot = await downloads.enter(client, disconnected).turn
      releaseStatement = statements.add(response, client)
      const opened = await openFramed(answer, AbortSignal.any([disconnected, over.signal]))
      rest = spools.through(opened, { blocked: releaseSlot, ended })
      const framed = toWrites(join(await readAhead(rest), rest), disconnected, {
        failed: (error) => {
          failure = error
          breakOff(response)
        },
        ended: (length) => lengths.set(tag, length),
      })
      response.writeHead(200, toHeaders())
      const encoder = createStage()
      await (encoder === undefined ? pipeline(framed, response) : pipeline(framed, encoder, response))
    } catch (error) {
      throw failure ?? (disconnected.aborted ? disconnected.reason : error)
    } finally {
      over.abort()
      ended()
      // If the client disconnects before the first write, no other code ends the generator, and its file would stay
      // open. The result is not awaited, so that slots are free immediately.
      void rest?.return(undefined)
    }
  }
  return async (context, client, answer, head, now, disconnected, charge) => {
    disconnected.throwIfAborted()
    const { request, response } = context
    const { encoding, tag, usesFile } = toForm(context, answer, files)
    const toHeaders = () => [
      ...FIXED_HEADERS,
      ...head.headers,
      ...['ETag', toEntityTag(tag, encoding)],
      ...toRequestHeaders(context, head, now, 'made'),
      ...context.extra,
      ...(encoding === 'identity' ? [] : ['Content-Encoding', encoding]),
    ]
    checkIfMatch(request, tag)
    if (matchesTag(request.headers['if-none-match'], tag)) return void response.writeHead(304, toHeaders()).end()
    // Clients that read remote Parquet and Arrow files send HEAD for the length. HEAD for other formats needs no
    // statement.
    if (request.method === 'HEAD') {
      const length = usesFile ? lengths.get(tag) : undefined
      const known = length === undefined ? [] : ['Content-Length', String(length)]
      if (!usesFile || length !== undefined) return void response.writeHead(200, [...toHeaders(), ...known]).end()
    }
    if ('open' in answer && !(usesFile && files.has(tag))) await charge?.()
    const release = longAnswers.add(response, client)
    try {
      const file =
        usesFile && 'open' in answer
          ? await files.get(tag, client, (signal) => openFramed(answer, signal), disconnected)
          : undefined
      if (file !== undefined) {
        lengths.set(tag, file.length)
        const part = toPart(request, toEntityTag(tag, 'identity'), file.length)
        return await sendFile({ request, response, admission }, file, part, toHeaders())
      }
      if (request.method === 'HEAD') return void response.writeHead(200, toHeaders()).end()
      await deliver(context, { client, answer, disconnected }, { encoding, tag, toHeaders })
    } finally {
      release()
    }
  }
}
