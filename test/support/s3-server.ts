import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'

export interface S3Server {
  readonly url: string
  readonly objects: ReadonlyMap<string, Buffer>
  /** Methods and paths of all requests that changed something, in order. */
  readonly writes: readonly string[]
  /** Changes or removes an object, like another program would. */
  replace(path: string, content: Buffer | undefined): void
  close(): Promise<void>
}

/** An object store with the part of S3's protocol that ClickHouse uses. Every signature is accepted. */
export async function startS3Server(): Promise<S3Server> {
  const objects = new Map<string, Buffer>()
  const uploads = new Map<string, Map<number, Buffer>>()
  const writes: string[] = []
  const tagOf = ({ length }: Buffer) => `"${length.toString(16).padStart(32, '0')}"`

  const sendObject = (request: IncomingMessage, response: ServerResponse, object: Buffer | undefined) => {
    if (object === undefined) {
      response.writeHead(404, { 'Content-Type': 'application/xml' })
      return response.end(
        request.method === 'HEAD' ? '' : '<Error><Code>NoSuchKey</Code><Message>none</Message></Error>',
      )
    }
    const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '') ?? []
    const first = Number(from ?? 0)
    const last = to === undefined || to === '' ? object.length - 1 : Math.min(Number(to), object.length - 1)
    const part = object.subarray(first, last + 1)
    response.writeHead(from === undefined ? 200 : 206, {
      'Content-Length': part.length,
      'Content-Type': 'binary/octet-stream',
      'Last-Modified': new Date(0).toUTCString(),
      ETag: tagOf(object),
      ...(from === undefined ? {} : { 'Content-Range': `bytes ${first}-${last}/${object.length}` }),
    })
    return response.end(request.method === 'HEAD' ? undefined : part)
  }

  const write = async (request: IncomingMessage, response: ServerResponse, url: URL) => {
    const path = decodeURIComponent(url.pathname)
    const upload = url.searchParams.get('uploadId') ?? ''
    const body = await buffer(request)
    writes.push(`${request.method} ${path}${url.search.replace(/uploadId=[^&]*/, 'uploadId')}`)
    if (request.method === 'PUT' && upload !== '') {
      uploads.get(upload)?.set(Number(url.searchParams.get('partNumber')), body)
      return response.writeHead(200, { ETag: tagOf(body) }).end()
    }
    if (request.method === 'PUT') {
      objects.set(path, body)
      return response.writeHead(200, { ETag: tagOf(body) }).end()
    }
    response.writeHead(200, { 'Content-Type': 'application/xml' })
    if (url.searchParams.has('uploads')) {
      const id = randomUUID()
      uploads.set(id, new Map())
      return response.end(`<InitiateMultipartUploadResult><UploadId>${id}</UploadId></InitiateMultipartUploadResult>`)
    }
    const parts = [...(uploads.get(upload) ?? [])].sort(([a], [b]) => a - b).map(([, part]) => part)
    if (request.method === 'POST') objects.set(path, Buffer.concat(parts))
    return response.end('<CompleteMultipartUploadResult><ETag>"0"</ETag></CompleteMultipartUploadResult>')
  }

  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://localhost')
    if (request.method === 'GET' || request.method === 'HEAD')
      sendObject(request, response, objects.get(decodeURIComponent(url.pathname)))
    else void write(request, response, url)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    objects,
    writes,
    replace: (path, content) => void (content === undefined ? objects.delete(path) : objects.set(path, content)),
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
