import { Readable } from 'node:stream'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createStoredPoints } from '../../api/prices/gathered-points.ts'
import { toPieceMs } from '../../api/series/pieces.ts'
import type { Database, Statement } from '../../shared/store/clickhouse.ts'
import { noDatabase } from '../support/no-database.ts'

const PIECE_MS = toPieceMs('5m')

/** Reads ranges of so many pieces each from a database that has no points, and answers when a test says so. */
function read(pieces: readonly number[], options: { cluster?: string } = {}) {
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
  const left = new AbortController()
  const readings = pieces.map((count, token) =>
    storedPoints['5m']({ token, from: 0, to: count * PIECE_MS }, left.signal),
  )
  const toRanges = () =>
    statements.map(({ params = {} }) => Object.keys(params).filter((name) => /^token/.test(name)).length)
  return { readings, toRanges, answer }
}

afterEach(() => vi.restoreAllMocks())

describe('ranges of stored points', () => {
  it('come together where they are short and two statements are under way', async () => {
    const { readings, toRanges, answer } = read([1, 1, 1, 3, 4, 1])
    await expect.poll(toRanges).toEqual([1, 1])
    answer()
    await Promise.all(readings)
    expect(toRanges().sort()).toEqual([1, 1, 1, 3])
  })

  it('have a statement each where they are longer', async () => {
    const { readings, toRanges, answer } = read([5, 5, 5, 5])
    await expect.poll(toRanges).toEqual([1, 1, 1, 1])
    answer()
    await Promise.all(readings)
  })

  it('have a statement each on a cluster, where a token needs one shard', async () => {
    const { readings, toRanges, answer } = read([1, 1, 1, 1], { cluster: 'dao_data' })
    await expect.poll(toRanges).toEqual([1, 1, 1, 1])
    answer()
    await Promise.all(readings)
  })

  it('are given up when an answer may not be waited for any longer, by those too who wait for a statement', async () => {
    const late = new AbortController()
    vi.spyOn(AbortSignal, 'timeout').mockReturnValue(late.signal)
    const { readings, toRanges } = read([1, 1, 1])
    const waiting = expect(readings[2]).rejects.toMatchObject({ code: 'storage' })
    const reading = expect(readings[0]).rejects.toMatchObject({ code: 'storage' })
    const other = expect(readings[1]).rejects.toMatchObject({ code: 'storage' })
    await expect.poll(toRanges).toEqual([1, 1])
    late.abort(new DOMException('late', 'TimeoutError'))
    await Promise.all([waiting, reading, other])
    expect(toRanges()).toEqual([1, 1])
  })
})
