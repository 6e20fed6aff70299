import { createWriteStream } from 'node:fs'
import { rm } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate } from 'node:zlib'
import { ClickHouseException } from './exception.ts'

/** The engine's names of the encodings that a request or a response may have. */
export type Encoding = 'none' | 'gzip' | 'deflate' | 'br' | 'zstd'

const decoders: Partial<Record<Encoding, (data: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>>> = {
  gzip: promisify(gunzip),
  deflate: promisify(inflate),
  br: promisify(brotliDecompress),
}

/** Reads `Content-Encoding`. Throws code 48 for an encoding that the engine cannot read. */
export function readEncoding(header: string | undefined): Encoding {
  switch (header) {
    case undefined:
    case '':
    case 'identity':
      return 'none'
    case 'gzip':
    case 'deflate':
    case 'br':
    case 'zstd':
      return header
    default:
      throw new ClickHouseException(48, 'NOT_IMPLEMENTED', `Content-Encoding ${header} is not supported.`)
  }
}

/** The best encoding of `Accept-Encoding` that the engine writes; `none` when there is no such. */
export function chooseEncoding(accepted: string | string[] | undefined): Encoding {
  const names = String(accepted ?? '')
    .split(',')
    .map((part) => part.split(';')[0]?.trim())
  return (['gzip', 'br', 'deflate', 'zstd'] as const).find((encoding) => names.includes(encoding)) ?? 'none'
}

/** Reads a whole body, decoded. Throws code 307 (413) past `maxBytes`, and an Error when the client goes away. */
export async function readText(request: IncomingMessage, encoding: Encoding, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > maxBytes) throw tooLarge(maxBytes)
    chunks.push(chunk)
  }
  const body = Buffer.concat(chunks)
  if (encoding === 'none' || body.length === 0) return body
  const decode = decoders[encoding]
  if (decode === undefined) {
    throw new ClickHouseException(
      48,
      'NOT_IMPLEMENTED',
      `A statement cannot be sent with Content-Encoding ${encoding}.`,
    )
  }
  try {
    return await decode(body, { maxOutputLength: maxBytes })
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new ClickHouseException(354, 'ZLIB_INFLATE_FAILED', `The ${encoding} body cannot be decoded: ${reason}`, 400)
  }
}

/**
 * Writes a body as it is to `path`; the engine reads it from there, so that any format and any size pass without
 * Node holding it in memory, and a body that breaks off never reaches the engine. Leaves no file behind on failure.
 */
export async function spoolBody(
  source: IncomingMessage | readonly Buffer[],
  path: string,
  maxBytes: number,
): Promise<void> {
  try {
    await pipeline(source, limitBytes(maxBytes), createWriteStream(path, { mode: 0o600 }))
  } catch (error) {
    await rm(path, { force: true })
    throw error
  }
}

function limitBytes(maxBytes: number): Transform {
  let seen = 0
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      seen += chunk.length
      if (seen <= maxBytes) done(null, chunk)
      else done(tooLarge(maxBytes))
    },
  })
}

function tooLarge(maxBytes: number): ClickHouseException {
  return new ClickHouseException(307, 'TOO_MANY_BYTES', `The request body is larger than ${maxBytes} bytes.`)
}

/** Splits a `multipart/form-data` body, as the client sends long parameters, into its named parts. */
export function readMultipart(body: Buffer, contentType: string): Map<string, string> {
  const parts = new Map<string, string>()
  const boundary = /boundary="?([^";]+)"?/i.exec(contentType)?.[1]
  if (boundary === undefined) throw new ClickHouseException(36, 'BAD_ARGUMENTS', 'multipart body without a boundary.')
  for (const part of body.toString('utf8').split(`--${boundary}`).slice(1, -1)) {
    const separator = part.indexOf('\r\n\r\n')
    const name = /name="([^"]*)"/i.exec(part.slice(0, separator))?.[1]
    if (separator === -1 || name === undefined) {
      throw new ClickHouseException(36, 'BAD_ARGUMENTS', 'multipart body with a part that has no name.')
    }
    parts.set(name, part.slice(separator + 4, -2))
  }
  return parts
}
