import { Readable, Writable } from 'node:stream'
import { expect, it } from 'vitest'
import type { StreamAnswer } from '../../api/answers/answer.ts'
import type { Exchange } from '../../api/route/exchange.ts'
import { createQueue } from '../../api/serving/queue.ts'
import type { Readers } from '../../api/serving/slow-readers.ts'
import type { Spools } from '../../api/serving/spool.ts'
import { createStreaming } from '../../api/serving/stream.ts'

const CHUNK = Buffer.alloc(64 * 1024, ' ')
const meters = { waiting: () => {}, waited: () => {}, refused: () => {} }

/** More bytes than are read before the headers are sent. */
const answer = {
  open: async () => Readable.from([Buffer.from('['), ...Array(16).fill(CHUNK), Buffer.from(']')]),
  before: '',
  after: '',
  digest: 'digest',
  holds: async () => true,
} as unknown as StreamAnswer

/** Spools to disk with free space: ClickHouse is done immediately, regardless of the client's speed. */
const onDisk: Spools = {
  through: async function* (source, { ended }) {
    ended()
    yield* source as AsyncIterable<Buffer>
  },
}
const toStreaming = (spools: Spools, readers: Readers, places: number) =>
  createStreaming({
    ...{ readers, spools, files: { get: async () => undefined } },
    queue: createQueue({ places, most: 1, clock: () => 0, meters }),
  })
const toExchange = (response: Writable) =>
  ({ request: { method: 'GET', headers: {} }, response, extra: [] }) as unknown as Exchange

it('createStreaming limits the long responses per client and does not close those of other clients', async () => {
  const slow: unknown[] = []
  const readers: Readers = {
    closeSlowest: (among) => {
      const [slowest] = [...among].filter((one) => slow.includes(one))
      return slowest
    },
    watch: () => {},
  }
  const sendStream = toStreaming(onDisk, readers, 200)
  const lefts: AbortController[] = []
  /** Resolves with the response when its headers are sent. The body is not read. */
  const begin = (client: string) =>
    new Promise<Writable>((resolve, reject) => {
      const response = Object.assign(new Writable({ write: () => {} }), { writeHead: () => resolve(response) })
      const left = new AbortController()
      left.signal.addEventListener('abort', () => response.destroy())
      lefts.push(left)
      const head = { headers: [] } as never
      sendStream(toExchange(response), { client, route: 'r' }, answer, head, 0, left.signal).catch(reject)
    })
  const begun: Writable[] = []
  while (begun.length < 128) begun.push(await begin('a'))
  await expect(begin('a')).rejects.toMatchObject({ code: 'rate_limited' })
  const other = await begin('b')
  slow.push(other)
  await expect(begin('a')).rejects.toMatchObject({ code: 'rate_limited' })
  slow.push(begun[7])
  await begin('a')
  for (const left of lefts) left.abort(new Error('left'))
})

it('createStreaming closes the spool if the client disconnects at the start of the response', async () => {
  const state = { isOpen: false }
  const spools: Spools = {
    through: async function* (source) {
      state.isOpen = true
      try {
        yield* source as AsyncIterable<Buffer>
      } finally {
        state.isOpen = false
      }
    },
  }
  const left = new AbortController()
  const response = Object.assign(new Writable({ write: (_bytes, _encoding, done) => done() }), {
    writeHead: () => {
      left.abort(new Error('left'))
      response.destroy()
    },
  })
  const sendStream = toStreaming(spools, { closeSlowest: () => undefined, watch: () => {} }, 1)
  const asker = { client: 'a', route: 'r' }
  const head = { headers: [] }
  const send = () => sendStream(toExchange(response), asker, answer, head as never, 0, left.signal)
  await expect(send()).rejects.toThrow('left')
  expect(state.isOpen).toBe(false)
})
