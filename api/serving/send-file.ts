import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Admission, ClientKey, Turns } from '../admission/admission.ts'
import type { FlatHeaders } from '../http/headers.ts'
import { type ByteRange, type Encoding, matchesTag, toEntityTag } from '../http/negotiation.ts'
import { checkIfMatch, toPart, toPartHeaders } from './respond.ts'

/** A file of known length, which is read in ranges. */
export interface RangedFile {
  readonly length: number
  read(range: ByteRange): Readable
}

interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly admission: Pick<Admission, 'clientKeyOf' | 'turns'>
}

async function* inTurns(chunks: AsyncIterable<Buffer>, client: ClientKey, turns: Turns): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    await new Promise<void>((resolve) => turns.take(client, resolve))
    yield chunk
  }
}

/** Sends a file or a range of it; for HEAD only its length. */
export async function sendFile(
  { request, response, admission }: Exchange,
  file: RangedFile,
  part: ByteRange | undefined,
  headers: FlatHeaders,
): Promise<void> {
  const range = part ?? { start: 0, end: file.length - 1 }
  const lengths = part === undefined ? ['Content-Length', String(file.length)] : toPartHeaders(part, file.length)
  response.writeHead(part === undefined ? 200 : 206, [...headers, ...lengths])
  if (request.method === 'HEAD' || file.length === 0) return void response.end()
  const client = admission.clientKeyOf(request)
  await pipeline(file.read(range), (chunks) => inTurns(chunks, client, admission.turns), response)
}

/**
 * Sends a file with an entity tag: conditional and range requests work like for every other answer. `tag` is the opaque
 * part without the encoding of the file. Resolves if the client disconnects before the end.
 * @throws Problem `precondition_failed` or `range_not_satisfiable`
 */
export async function sendTaggedFile(
  exchange: Exchange,
  file: RangedFile,
  { tag, encoding, headers }: { readonly tag: string; readonly encoding: Encoding; readonly headers: FlatHeaders },
): Promise<void> {
  const { request, response } = exchange
  const entityTag = toEntityTag(tag, encoding)
  const encoded = encoding === 'identity' ? [] : ['Content-Encoding', encoding]
  const tagged = [...headers, ...encoded, 'ETag', entityTag, 'Accept-Ranges', 'bytes']
  checkIfMatch(request, tag)
  if (matchesTag(request.headers['if-none-match'], tag)) return void response.writeHead(304, tagged).end()
  try {
    await sendFile(exchange, file, toPart(request, entityTag, file.length), tagged)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error
  }
}
