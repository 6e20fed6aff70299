import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import type { Encoding } from './body.ts'
import { type ClickHouseException, toExceptionText } from './exception.ts'

/** What a ClickHouse server reports of a finished statement; left out where the engine does not tell. */
export type Summary = { readonly result_rows?: string; readonly written_rows?: string; readonly elapsed_ns: string }

export type ResponseHead = { readonly format: string; readonly encoding: Encoding }

/** A result this small is sent in one piece, with its length and summary; a larger one is streamed. */
const WHOLE_RESPONSE_BYTES = 64 * 1024

const STALLED_CLIENT_MS = 60_000

const contentTypes: readonly (readonly [RegExp, string])[] = [
  [/^JSON.*EachRow/i, 'application/x-ndjson; charset=UTF-8'],
  [/^JSON/i, 'application/json; charset=UTF-8'],
  [/^CSV/i, 'text/csv; charset=UTF-8'],
  [/^(TabSeparated|TSV)/i, 'text/tab-separated-values; charset=UTF-8'],
  [/^(Parquet|Arrow|RowBinary|Native|ORC|Avro|MsgPack|Npy)/i, 'application/octet-stream'],
]

function writeHead(response: ServerResponse, { format, encoding }: ResponseHead): void {
  const contentType = contentTypes.find(([pattern]) => pattern.test(format))?.[1] ?? 'text/plain; charset=UTF-8'
  response.setHeader('Content-Type', contentType)
  response.setHeader('X-ClickHouse-Format', format)
  if (encoding !== 'none') response.setHeader('Content-Encoding', encoding)
}

/** Sends a finished result. */
export function sendWhole(response: ServerResponse, head: ResponseHead, summary: Summary, body: Uint8Array): void {
  writeHead(response, head)
  response.setHeader('X-ClickHouse-Summary', JSON.stringify(summary))
  response.setHeader('Content-Length', body.byteLength)
  response.end(body)
}

/**
 * Sends what `source` yields while the statement runs; `finished` tells how it ended. Reads no faster than the client
 * does. An error before the first bytes are on their way is thrown; after that it breaks the response off.
 */
export async function sendStream(
  response: ServerResponse,
  head: ResponseHead,
  source: Readable,
  finished: Promise<Summary>,
  signal: AbortSignal,
): Promise<void> {
  const held: Buffer[] = []
  let heldBytes = 0
  let streaming = false
  const tag = randomBytes(8).toString('hex')
  const start = () => {
    streaming = true
    writeHead(response, head)
    response.setHeader('X-ClickHouse-Exception-Tag', tag)
    // A client that reads nothing would keep its connection to the engine for ever.
    response.setTimeout(STALLED_CLIENT_MS, () => {
      if (response.writableNeedDrain) response.destroy()
    })
  }
  const copy = async () => {
    for await (const chunk of source as AsyncIterable<Buffer>) {
      if (!streaming && heldBytes + chunk.length <= WHOLE_RESPONSE_BYTES) {
        held.push(chunk)
        heldBytes += chunk.length
        continue
      }
      if (!streaming) {
        start()
        for (const early of held) response.write(early)
      }
      if (!response.write(chunk)) await once(response, 'drain', { signal })
    }
  }
  // A statement that fails may never open its end of the pipe: the reader would wait for ever.
  finished.catch(() => source.destroy())
  const [copied, ended] = await Promise.allSettled([copy(), finished])
  if (ended.status === 'rejected') {
    if (streaming) throw new BrokenOffError(tag, head.encoding, ended.reason)
    throw ended.reason
  }
  if (copied.status === 'rejected') throw copied.reason
  if (streaming) response.end()
  else sendWhole(response, head, ended.value, Buffer.concat(held))
}

/** An error that came when part of the result was already sent. */
export class BrokenOffError extends Error {
  readonly tag: string
  readonly encoding: Encoding

  constructor(tag: string, encoding: Encoding, cause: unknown) {
    super('the statement failed after part of its result was sent', { cause })
    this.tag = tag
    this.encoding = encoding
  }
}

/** Sends an error as a ClickHouse server does: status, code header, and the text as the body. */
export function sendException(response: ServerResponse, error: ClickHouseException): void {
  response.statusCode = error.status
  response.setHeader('X-ClickHouse-Exception-Code', error.code)
  response.setHeader('Content-Type', 'text/plain; charset=UTF-8')
  if (error.status === 503) response.setHeader('Retry-After', '1')
  response.end(toExceptionText(error))
}

/**
 * Ends a response that is under way so that nobody can take it for complete: the server's own trailer with the error,
 * which row-wise readers parse, and then a connection closed without the last chunk. Inside a compressed body no
 * trailer fits: there the missing end is the sign.
 */
export function breakOff(response: ServerResponse, broken: BrokenOffError, error: ClickHouseException): void {
  if (broken.encoding !== 'none') {
    response.destroy()
    return
  }
  const text = toExceptionText(error)
  const mark = '__exception__'
  const trailer = `\r\n${mark}\r\n${broken.tag}\r\n${text}${Buffer.byteLength(text)} ${broken.tag}\r\n${mark}\r\n`
  response.write(trailer, () => response.destroy())
}
