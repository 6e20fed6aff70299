import { once } from 'node:events'
import { type ClientRequest, get, type IncomingMessage } from 'node:http'

/** An event as the client parses it. */
export interface StreamEvent {
  readonly id: string
  readonly event: string
  readonly data: Record<string, unknown>
}

/** A client of an event stream that tracks the resume position like a browser. */
export interface StreamClient {
  readonly response: IncomingMessage
  readonly events: readonly StreamEvent[]
  /** The number of received comments. */
  readonly comments: number
  /** Every received id, with or without an event. */
  readonly ids: readonly string[]
  /** The last received id, or the initial one. */
  readonly lastId: string | undefined
  /** Resolves when the connection is closed. */
  readonly closed: Promise<unknown>
  kill(): void
}

/** Connects, and resolves with the first bytes. */
export async function openStream(url: string, from?: string): Promise<StreamClient> {
  const request: ClientRequest = get(url, {
    headers: { accept: 'text/event-stream', ...(from ? { 'last-event-id': from } : {}) },
    agent: false,
  })
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  const events: StreamEvent[] = []
  const ids: string[] = []
  let [rest, comments] = ['', 0]
  const take = (block: string) => {
    const fields = new Map(
      block.split('\n').map((line) => {
        const at = line.indexOf(':')
        return [line.slice(0, at), line.slice(at + 1).trim()]
      }),
    )
    if (fields.has('')) comments += 1
    const id = fields.get('id')
    if (id !== undefined) ids.push(id)
    const data = fields.get('data')
    if (data !== undefined) events.push({ id: id ?? '', event: fields.get('event') ?? '', data: JSON.parse(data) })
  }
  response.setEncoding('utf8').on('data', (text: string) => {
    const blocks = (rest + text).split('\n\n')
    rest = blocks.pop() ?? ''
    for (const block of blocks) take(block)
  })
  response.on('error', () => undefined)
  request.on('error', () => undefined)
  const closed = new Promise((resolve) => response.once('close', resolve))
  if (response.statusCode === 200) await once(response, 'data')
  return {
    response,
    events,
    ids,
    get comments() {
      return comments
    },
    get lastId() {
      return ids.at(-1) ?? from
    },
    closed,
    kill: () => request.destroy(),
  }
}
