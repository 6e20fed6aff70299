import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { PassThrough, Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { createFairQueue } from '../../api/admission/fair-queue.ts'
import { encode } from '../../api/http/negotiation.ts'
import { createCompression } from '../../api/serving/compression.ts'
import type { ReadyAnswer } from '../../api/serving/ready-answer.ts'
import { ClientDisconnected } from '../../api/single-flight/single-flight.ts'
import { createRandom } from '../support/random.ts'

const random = createRandom(1)
/** Text that compresses like an answer. */
const toText = (bytes: number) => {
  const words = Array.from({ length: Math.ceil(bytes / 12) }, () => `{"v":${1e6 + random.below(1e6)}`)
  return Buffer.from(words.join(',').slice(0, bytes))
}

const toAnswer = (body: Buffer) => ({ body, tag: 'tag', forms: new Map() }) as unknown as ReadyAnswer
const toContext = (client: string) => ({
  request: { client } as unknown as IncomingMessage,
  response: new PassThrough() as unknown as ServerResponse,
})

/** A compression whose queue counts its turns. */
function create(slots = 1) {
  const turns: string[] = []
  const queue = createFairQueue(
    { slots, maxWaiting: 1000, maxWaitingPerClient: 1000, maxWaitMs: 60_000 },
    { waiting: () => {}, waited: () => {}, rejected: () => {} },
  )
  const compression = createCompression({
    compression: {
      rejectEarly: queue.rejectEarly,
      enter: (client, signal) => {
        const ticket = queue.enter(client, signal)
        const turn = ticket.turn.then((release) => {
          turns.push(client)
          return release
        })
        return { ...ticket, turn }
      },
    },
    clientKeyOf: (request) => (request as unknown as { client: string }).client,
  })
  return { compression, turns }
}

describe('compress', () => {
  it('compresses once for concurrent requests for an answer and an encoding', async () => {
    const { compression, turns } = create()
    const answer = toAnswer(toText(100_000))
    const all = await Promise.all(
      ['a', 'b', 'c'].map((client) => compression.compress(answer, 'br', toContext(client))),
    )
    expect(turns).toEqual(['a'])
    expect(new Set(all).size).toBe(1)
    expect(brotliDecompressSync(all[0] as Buffer)).toEqual(answer.body)
  })

  it('lets another client compress between the answers of a client with many', async () => {
    const { compression, turns } = create()
    const many = Array.from({ length: 5 }, () =>
      compression.compress(toAnswer(toText(1000)), 'gzip', toContext('many')),
    )
    const one = compression.compress(toAnswer(toText(1000)), 'gzip', toContext('one'))
    await Promise.all([...many, one])
    expect(turns.indexOf('one')).toBeLessThanOrEqual(2)
  })

  it('ends for a client that disconnects while it waits', async () => {
    const { compression, turns } = create()
    const first = compression.compress(toAnswer(toText(100_000)), 'br', toContext('a'))
    const context = toContext('b')
    const second = compression.compress(toAnswer(toText(100_000)), 'br', context)
    context.response.destroy()
    await expect(second).rejects.toBeInstanceOf(ClientDisconnected)
    await first
    expect(turns).toEqual(['a'])
  })
})

describe('createStage', () => {
  const { signal } = new AbortController()

  it.each([
    ['gzip', gunzipSync],
    ['br', brotliDecompressSync],
  ] as const)('%s preserves the bytes, and every chunk waits for its turn', async (encoding, decompress) => {
    const { compression, turns } = create()
    const chunks = Array.from({ length: 4 }, () => toText(64 * 1024))
    const bytes = await buffer(Readable.from(chunks).pipe(compression.createStage(encoding, 'a', signal)))
    expect(decompress(bytes).equals(Buffer.concat(chunks))).toBe(true)
    expect(turns).toHaveLength(chunks.length + 1)
  })

  it('occupies no slot while its client does not read, or after it has disconnected', async () => {
    const { compression } = create()
    const stage = compression.createStage('gzip', 'slow', signal)
    // Random bytes do not become shorter, so the stage is full after one chunk.
    const noise = Buffer.from(Array.from({ length: 256 * 1024 }, () => random.below(256)))
    stage.write(noise)
    stage.write(noise)
    const answer = toAnswer(toText(1000))
    expect(gunzipSync(await compression.compress(answer, 'gzip', toContext('other')))).toEqual(answer.body)
    stage.destroy()
    await once(stage, 'close')
    expect(await compression.compress(toAnswer(toText(1000)), 'gzip', toContext('other'))).toBeInstanceOf(Buffer)
  })
})

describe('encode', () => {
  it('uses cheaper levels of Brotli for longer answers and for those that are not cached', async () => {
    const lengthOf = async (bytes: Buffer, isCached: boolean) => (await encode(bytes, 'br', { isCached })).length
    const [short, long] = [toText(60_000), toText(2_000_000)]
    expect(await lengthOf(short, true)).not.toBe(await lengthOf(short, false))
    expect(await lengthOf(long, true)).toBe(await lengthOf(long, false))
  })
})
