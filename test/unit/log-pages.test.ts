import { describe, expect, it } from 'vitest'
import { DataError } from '../../shared/errors.ts'
import { createPager, type Pager, TooWide } from '../../workers/providers/evm/logs/log-pages.ts'
import { readRefusal } from '../../workers/providers/evm/logs/refusal.ts'

/** Reads a range of blocks with logs. The node rejects ranges for which `refuses` returns true. */
async function readBlocks(
  from: number,
  to: number,
  refuses: (from: number, to: number) => boolean,
  {
    pager = createPager(),
    logsIn = (): number => 1,
    toRefusal = () => new TooWide(),
  }: { pager?: Pager; logsIn?: (block: number) => number; toRefusal?: () => TooWide } = {},
) {
  const pages: [number, number][] = []
  const refused: number[] = []
  const found: number[] = []
  for (let at = from; at <= to; ) {
    const page = await pager.read(at, to, async (first, end, last) => {
      if (refuses(first, end)) {
        if (last) throw new Error('refused at one block')
        refused.push(end - first + 1)
        return toRefusal()
      }
      pages.push([first, end])
      return blocks(first, end).flatMap((block) => Array<number>(logsIn(block)).fill(block))
    })
    for (const block of page.found) found.push(block)
    at = page.end + 1
  }
  return { found, pages, refused }
}
const blocks = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, at) => from + at)

describe('createPager', () => {
  it('starts with 2,000 blocks and grows by half', async () => {
    const { pages } = await readBlocks(1, 10_000, () => false)
    expect(pages).toEqual([
      [1, 2_000],
      [2_001, 5_000],
      [5_001, 9_500],
      [9_501, 10_000],
    ])
  })

  it.each([1, 7, 50, 1_000, 1_999])('covers every block once with a node limit of %i blocks', async (most) => {
    const { found } = await readBlocks(13, 4_500, (from, to) => to - from + 1 > most)
    expect(found).toEqual(blocks(13, 4_500))
  })

  it('shrinks for dense blocks and grows again behind them', async () => {
    const isDense = (from: number, to: number) => from <= 700 && to >= 640 && to > from
    const { found, pages } = await readBlocks(1, 20_000, isDense)
    expect(found).toEqual(blocks(1, 20_000))
    expect(pages.length).toBeLessThan(160)
  })

  it('fails if one block is too much', async () => {
    await expect(readBlocks(1, 10, (from, to) => from <= 5 && to >= 5)).rejects.toThrow('refused at one block')
  })

  it('shrinks after repeated timeouts and covers every block', async () => {
    const pager = createPager()
    const unanswered: number[] = []
    const readPage = async (from: number, to: number) => {
      if (to - from + 1 <= 600) return blocks(from, to)
      unanswered.push(to - from + 1)
      throw new DataError('provider_unavailable', 'status 504', { status: 504 })
    }
    await expect(pager.read(1, 60_000, readPage)).rejects.toThrow('504')
    const found: number[] = []
    for (let at = 1; at <= 60_000; ) {
      const page = await pager.read(at, 60_000, readPage)
      found.push(...page.found)
      at = page.end + 1
    }
    expect(found).toEqual(blocks(1, 60_000))
    expect(unanswered.length).toBeLessThan(20)
  })

  it.each([
    ['is busy', { status: 429 }],
    ['sends Retry-After', { status: 503, retryAfterMs: 90_000 }],
    ['cannot be reached', {}],
  ])('keeps the page size if a node %s', async (_, options) => {
    const pager = createPager()
    const failure = new DataError('provider_unavailable', 'no answer', options)
    const requests: number[] = []
    const fail = async (from: number, to: number) => {
      requests.push(to - from + 1)
      throw failure
    }
    for (let n = 0; n < 2; n += 1) await expect(pager.read(1, 60_000, fail)).rejects.toBe(failure)
    expect(requests[1]).toBe(requests[0])
    expect(requests).toHaveLength(2)
  })

  it('returns no pages for an empty range', async () => {
    expect(await readBlocks(5, 4, () => false)).toEqual({ found: [], pages: [], refused: [] })
  })

  it.each([50, 1_000, 7_000])('learns a limit of %i blocks and does not exceed it again', async (most) => {
    const pager = createPager()
    const isTooWide = (from: number, to: number) => to - from + 1 > most
    const few = { pager, logsIn: (block: number) => (block % 20 === 0 ? 1 : 0) }
    await readBlocks(1, 30 * most, isTooWide, few)
    const { refused, pages } = await readBlocks(1, 50 * most, isTooWide, few)
    expect(refused).toEqual([])
    expect(pages.length).toBeLessThanOrEqual(50 / 0.85)
  })

  it.each([
    ['Under the Free tier plan, you can make eth_getLogs requests with up to a 10 block range.', 10],
    ['range 20001 exceeds limit of 1000', 1_000],
    ['eth_getLogs is limited to a 1,000 range', 1_000],
    ['ranges over 1000 blocks are not supported on freetier', 1_000],
    ['exceed maximum block range: max is 1k blocks', 1_000],
    ['query exceeds max block range 1000', 1_000],
    ['exceed maximum block range: 1000', 1_000],
    ['requested too many blocks from 0 to 16777216, maximum is set to 1000', 1_000],
    ['Please limit the query to at most 1000 blocks', 1_000],
    ['block range is too wide, limit of 1,000 blocks', 1_000],
  ])('uses the limit named in a rejection: %s', async (message, most) => {
    const pager = createPager()
    const isTooWide = (from: number, to: number) => to - from + 1 > most
    const node = { pager, toRefusal: () => readRefusal(message) }
    const { found, refused } = await readBlocks(1, 300 * most, isTooWide, node)
    expect(found).toHaveLength(300 * most)
    expect(refused).toEqual([2_000])
    // A node that counts the first block allows one block less.
    const stricter = (from: number, to: number) => to - from + 1 >= most
    expect((await readBlocks(1, 300 * most, stricter, node)).refused).toEqual([most])
  })

  it.each([
    'query returned more than 10000 results',
    'logs matched by query exceeds limit of 10000',
    'block range limit exceeded',
    'query exceeds max results 20000, retry with the range 22142841-22142933',
  ])('learns no limit from a rejection without one: %s', (message) => {
    expect(readRefusal(message)).toEqual(new TooWide())
  })

  it('uses the range suggested by another node', () => {
    const message = 'query returned more than 10000 results. Try with this block range [0x1, 0x12c].'
    expect(readRefusal(message)).toEqual(new TooWide({ width: 300 }))
  })

  it('uses the range suggested for the same blocks', async () => {
    const suggestion =
      'Log response size exceeded. Based on your parameters, this block range should work: [0x1, 0x12c]'
    const logsIn = (block: number) => (block <= 2_000 ? 20 : 0)
    const isTooMuch = (from: number, to: number) => blocks(from, to).reduce((sum, one) => sum + logsIn(one), 0) > 6_000
    const toRefusal = () => readRefusal(suggestion)
    const { refused, pages } = await readBlocks(1, 2_000, isTooMuch, { logsIn, toRefusal })
    expect(refused[0]).toBe(2_000)
    expect(pages[0]).toEqual([1, 300])
  })

  it('tries a larger page after a hundred, because a node may have changed its limit', async () => {
    const pager = createPager()
    let most = 1_000
    const isTooWide = (from: number, to: number) => to - from + 1 > most
    await readBlocks(1, 20_000, isTooWide, { pager })
    most = 8_000
    await readBlocks(1, 100_000, isTooWide, { pager })
    const { pages } = await readBlocks(1, 80_000, isTooWide, { pager })
    expect(pages.length).toBeLessThan(20)
    most = 500
    const narrower = await readBlocks(1, 50_000, isTooWide, { pager })
    expect(narrower.refused.length).toBeLessThan(20)
  })

  it('shrinks only for busy blocks, not for the blocks behind them', async () => {
    const pager = createPager()
    const logsIn = (block: number) => (block > 5_000 && block <= 5_400 ? 100 : 0)
    const isTooMuch = (from: number, to: number) =>
      blocks(from, to).reduce((sum, block) => sum + logsIn(block), 0) > 10_000
    await readBlocks(1, 4_000, isTooMuch, { pager, logsIn })
    const { found, refused } = await readBlocks(4_001, 6_000, isTooMuch, { pager, logsIn })
    expect(found).toHaveLength(40_000)
    expect(refused.length).toBeLessThan(12)
    const behind = await readBlocks(6_001, 46_000, isTooMuch, { pager, logsIn })
    expect(behind.refused).toEqual([])
    expect(behind.pages.length).toBeLessThan(30)
  })

  it('learns from repeated rejections of a busy chain', async () => {
    const pager = createPager()
    const isTooMuch = (from: number, to: number) => to - from + 1 > 900
    const first = await readBlocks(1, 20_000, isTooMuch, { pager, logsIn: () => 11 })
    const second = await readBlocks(1, 40_000, isTooMuch, { pager, logsIn: () => 11 })
    expect(first.found).toHaveLength(220_000)
    expect(first.refused.length + second.refused.length).toBeLessThan(20)
  })
})
