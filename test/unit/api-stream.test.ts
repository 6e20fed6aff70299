import { Readable, Writable } from 'node:stream'
import { expect, it, vi } from 'vitest'
import type { ResponseLimit } from '../../api/admission/admission.ts'
import { createFairQueue } from '../../api/admission/fair-queue.ts'
import type { StreamAnswer } from '../../api/formats/formats.ts'
import { Problem } from '../../api/problem/problem.ts'
import type { RequestContext } from '../../api/route/request-context.ts'
import type { Spools } from '../../api/serving/spool.ts'
import { createStreaming, type SendStream } from '../../api/serving/stream.ts'

const CHUNK = Buffer.alloc(64 * 1024, ' ')
const meters = { waiting: () => {}, waited: () => {}, rejected: () => {} }
const unlimited: ResponseLimit = { add: () => () => {} }

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
const toStreaming = (spools: Spools, limits: { longAnswers?: ResponseLimit; statements?: ResponseLimit } = {}) =>
  createStreaming({
    ...{ spools, files: { has: () => false, get: async () => undefined } },
    compression: {
      createStage: () => {
        throw new Error('no client of these tests accepts an encoding')
      },
    },
    admission: {
      downloads: createFairQueue({ slots: 1, maxWaiting: 1, clock: () => 0 }, meters),
      ...{ longAnswers: unlimited, statements: unlimited, ...limits },
    },
  })
const toExchange = (response: Writable) =>
  ({ request: { method: 'GET', headers: {} }, response, extra: [] }) as unknown as RequestContext

/** A client whose response is open until the test ends it. The body is not read. */
function startClient(sendStream: SendStream, client: string) {
  const disconnected = new AbortController()
  const writeHead = vi.fn()
  const response = Object.assign(new Writable({ write: () => {} }), { writeHead })
  disconnected.signal.addEventListener('abort', () => response.destroy())
  const sent = sendStream(toExchange(response), client, answer, { headers: [] } as never, 0, disconnected.signal)
  return { sent, disconnected, started: () => expect.poll(() => writeHead.mock.calls.length).toBe(1) }
}

it('createStreaming counts a long response until it ends, and its statement until ClickHouse has written it', async () => {
  const open = { longAnswers: new Set<unknown>(), statements: new Set<unknown>() }
  const toLimit = (responses: Set<unknown>): ResponseLimit => ({
    add: (response) => {
      responses.add(response)
      return () => void responses.delete(response)
    },
  })
  const [longAnswers, statements] = [toLimit(open.longAnswers), toLimit(open.statements)]
  const { sent, disconnected, started } = startClient(toStreaming(onDisk, { longAnswers, statements }), 'a')
  await started()
  expect([open.longAnswers.size, open.statements.size]).toEqual([1, 0])
  disconnected.abort(new Error('left'))
  await expect(sent).rejects.toThrow('left')
  expect(open.longAnswers.size).toBe(0)
})

it('createStreaming sends nothing to a client over its limit of long responses', async () => {
  const full: ResponseLimit = {
    add: () => {
      throw new Problem('rate_limited', 'full')
    },
  }
  const { sent } = startClient(toStreaming(onDisk, { longAnswers: full }), 'a')
  await expect(sent).rejects.toMatchObject({ code: 'rate_limited' })
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
  const disconnected = new AbortController()
  const response = Object.assign(new Writable({ write: (_bytes, _encoding, done) => done() }), {
    writeHead: () => {
      disconnected.abort(new Error('left'))
      response.destroy()
    },
  })
  const sendStream = toStreaming(spools)
  const head = { headers: [] }
  const send = () => sendStream(toExchange(response), 'a', answer, head as never, 0, disconnected.signal)
  await expect(send()).rejects.toThrow('left')
  expect(state.isOpen).toBe(false)
})
