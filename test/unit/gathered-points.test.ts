import { Readable } from 'node:stream'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createStoredPoints } from '../../api/prices/points.ts'
import { toChunkMs } from '../../api/series/chunks.ts'
import type { Database, Statement } from '../../shared/store/store.ts'
import { noDatabase } from '../support/no-database.ts'

const CHUNK_MS = toChunkMs('5m')

/** Reads ranges of the given numbers of chunks from a database without points; `answer` completes the statements. */
function read(chunks: readonly number[], options: { cluster?: string } = {}) {
  const statements: Statement[] = []
  let answer = () => {}
  const answered = new Promise<void>((resolve) => {
    answer = resolve
  })
  const stream = async (statement: Statement) => {
    statements.push(statement)
    await answered
    return Readable.from([])
  }
  const storedPoints = createStoredPoints({ ...noDatabase, stream, cluster: options.cluster } as Database, 8)
  const disconnected = new AbortController()
  const readings = chunks.map((count, token) =>
    storedPoints['5m']({ token, from: 0, to: count * CHUNK_MS }, disconnected.signal),
  )
  const toRanges = () =>
    statements.map(({ params = {} }) => Object.keys(params).filter((name) => /^token/.test(name)).length)
  return { readings, toRanges, answer }
}

afterEach(() => vi.restoreAllMocks())

describe('createStoredPoints', () => {
  it('batches short ranges while two statements are running', async () => {
    const { readings, toRanges, answer } = read([7, 7, 7, 14, 14, 7])
    await expect.poll(toRanges).toEqual([1, 1])
    answer()
    await Promise.all(readings)
    expect(toRanges().sort()).toEqual([1, 1, 2, 2])
  })

  it('sends a statement for each longer range', async () => {
    const { readings, toRanges, answer } = read([15, 15, 15, 15])
    await expect.poll(toRanges).toEqual([1, 1, 1, 1])
    answer()
    await Promise.all(readings)
  })

  it('sends a statement for each range on a cluster, where a token needs one shard', async () => {
    const { readings, toRanges, answer } = read([1, 1, 1, 1], { cluster: 'dao_data' })
    await expect.poll(toRanges).toEqual([1, 1, 1, 1])
    answer()
    await Promise.all(readings)
  })

  it('aborts running and waiting reads at the time limit', async () => {
    const late = new AbortController()
    vi.spyOn(AbortSignal, 'timeout').mockReturnValue(late.signal)
    const { readings, toRanges } = read([1, 1, 1])
    const waiting = expect(readings[2]).rejects.toMatchObject({ code: 'storage' })
    const reading = expect(readings[0]).rejects.toMatchObject({ code: 'storage' })
    const second = expect(readings[1]).rejects.toMatchObject({ code: 'storage' })
    await expect.poll(toRanges).toEqual([1, 1])
    late.abort(new DOMException('late', 'TimeoutError'))
    await Promise.all([waiting, reading, second])
    expect(toRanges()).toEqual([1, 1])
  })
})
