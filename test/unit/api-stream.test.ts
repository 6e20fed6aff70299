import type { ServerResponse } from 'node:http'
import { Readable, Writable } from 'node:stream'
import { expect, it } from 'vitest'
import type { StreamAnswer } from '../../api/answers/answer.ts'
import type { Exchange } from '../../api/route/exchange.ts'
import { createQueue } from '../../api/serving/queue.ts'
import type { Spools } from '../../api/serving/spool.ts'
import { createStreaming } from '../../api/serving/stream.ts'

const CHUNK = Buffer.alloc(64 * 1024, ' ')
const meters = { waiting: () => {}, waited: () => {}, refused: () => {} }

/** More than is read before the head is sent. */
const answer = {
  open: async () => Readable.from([Buffer.from('['), ...Array(16).fill(CHUNK), Buffer.from(']')]),
  before: '',
  after: '',
  digest: 'digest',
  holds: async () => true,
} as unknown as StreamAnswer

it('a long answer whose client leaves as it begins leaves nothing open', async () => {
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
  const sendStream = createStreaming({
    readers: { closeSlowest: () => undefined, watch: () => {} },
    spools,
    files: { get: async () => undefined },
    queue: createQueue({ places: 1, most: 1, clock: () => 0, meters }),
  })
  const exchange = {
    request: { method: 'GET', headers: {} },
    response: response as unknown as ServerResponse,
    extra: [],
  }
  const asker = { client: 'a', route: 'r' }
  const head = { headers: [] }
  const send = () => sendStream(exchange as unknown as Exchange, asker, answer, head as never, 0, left.signal)
  await expect(send()).rejects.toThrow('left')
  expect(state.isOpen).toBe(false)
})
