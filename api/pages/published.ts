import { createReadStream } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import type { Request, RequestHandler } from 'express'
import { LRUCache } from 'lru-cache'
import type { Admission } from '../admission/admission.ts'
import { FIXED_HEADERS } from '../http/headers.ts'
import { type ByteRange, chooseEncoding, type Encoding, encode } from '../http/negotiation.ts'
import { Problem } from '../problem/problem.ts'
import type { RequestContext } from '../route/request-context.ts'
import { restrictCaching } from '../serving/respond.ts'
import { sendTaggedFile } from '../serving/send-file.ts'

const PUBLISHED_PATH = '/published'

/** Names with the version of their content, which never changes. */
const VERSIONED = /^(?:part|load|clickhouse|croissant|README)-([0-9a-f]{16})\.(?:parquet|sql|json|md)$/
const FOREVER = 'public, max-age=31536000, immutable'

const TYPES: Readonly<Record<string, string>> = {
  json: 'application/json; charset=utf-8',
  parquet: 'application/vnd.apache.parquet',
  sql: 'application/sql; charset=utf-8',
  md: 'text/markdown; charset=utf-8',
}

/** Names of folders and files. Unfinished files begin with a dot and are not served. */
const FILE = /^(?:\/[\w=-][\w=.-]*)+\.([a-z]+)$/

/** Decodes `%3D` and other bytes; a malformed text names no file. */
function decode(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    return ''
  }
}

/** The file of a path below `/published`; undefined if there is none. */
async function findFile(folder: string, path: string) {
  const [, extension = ''] = FILE.exec(path) ?? []
  const type = TYPES[extension]
  if (type === undefined) return undefined
  const file = join(folder, path)
  try {
    const facts = await stat(file)
    return facts.isFile() ? { file, type, ...facts } : undefined
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    if (['ENOENT', 'ENOTDIR', 'ENAMETOOLONG'].includes(code)) return undefined
    throw error
  }
}

/** Longer texts are sent as they are: compressing one needs its bytes in memory. A catalog of a decade has 2 MB. */
const MOST_COMPRESSED_BYTES = 8 * 1024 * 1024
/** Memory of the compressed texts: the catalog and the files beside the data have a tenth of their size. */
const CACHED_BYTES = 4 * 1024 * 1024

/** Compresses each version of a text once per encoding; concurrent requests share the work. */
function createTexts() {
  const running = new Map<string, Promise<Buffer>>()
  const cached = new LRUCache<string, Buffer>({ maxSize: CACHED_BYTES, sizeCalculation: ({ length }) => length })
  return async (file: string, tag: string, encoding: Encoding): Promise<Buffer> => {
    const key = `${encoding} ${tag} ${file}`
    const found = cached.get(key) ?? running.get(key)
    if (found !== undefined) return found
    const making = readFile(file).then((text) => encode(text, encoding))
    running.set(key, making)
    try {
      const bytes = await making
      cached.set(key, bytes)
      return bytes
    } finally {
      running.delete(key)
    }
  }
}

/** The encoding of a file. Parquet is compressed already; ranges are those of the file as it is. */
const chooseFor = ({ headers }: Request, type: string | undefined, size: number): Encoding =>
  type === TYPES.parquet || size > MOST_COMPRESSED_BYTES || headers.range !== undefined
    ? 'identity'
    : chooseEncoding(headers['accept-encoding'])

/**
 * Serves the files of a publication from the disk, with ranges and conditional requests. Data files never pass through
 * the caches of this process; the texts beside them are compressed.
 */
export function createPublished(folder: string, admission: Pick<Admission, 'clientKeyOf' | 'turns'>): RequestHandler {
  const compressText = createTexts()
  return async (request, response, next) => {
    if (request.path !== PUBLISHED_PATH && !request.path.startsWith(`${PUBLISHED_PATH}/`)) return next()
    response.locals.route = PUBLISHED_PATH
    const path = decode(request.path.slice(PUBLISHED_PATH.length))
    const found = await findFile(folder, path)
    if (found === undefined)
      throw new Problem(
        'not_found',
        'No such file. /published/catalog.json lists the published files, if the operator publishes any.',
      )
    const { requestId, caller } = response.locals as Pick<RequestContext, 'requestId' | 'caller'>
    const { file, type, size, mtime, mtimeMs } = found
    const [, version] = VERSIONED.exec(path.slice(path.lastIndexOf('/') + 1)) ?? []
    const headers = [
      ...FIXED_HEADERS,
      ...['X-Request-Id', requestId, 'Content-Type', type, 'Last-Modified', mtime.toUTCString()],
      ...['Cache-Control', version === undefined ? 'no-cache' : restrictCaching(caller, FOREVER)],
      ...(type === TYPES.parquet ? [] : ['Vary', 'Accept-Encoding']),
    ]
    const tag = `${version ?? Math.floor(mtimeMs).toString(16)}-${size}`
    const encoding = chooseFor(request, type, size)
    const compressed = encoding === 'identity' ? undefined : await compressText(file, tag, encoding)
    const read = (range: ByteRange) =>
      compressed === undefined
        ? createReadStream(file, range)
        : Readable.from([compressed.subarray(range.start, range.end + 1)])
    const length = compressed?.length ?? size
    await sendTaggedFile({ request, response, admission }, { length, read }, { tag, encoding, headers })
  }
}
