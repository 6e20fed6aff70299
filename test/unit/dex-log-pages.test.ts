import { describe, expect, it } from 'vitest'
import { createPager, TOO_WIDE } from '../../workers/providers/evm/dex/log-pages.ts'

/** Blocks from one to another; a node that refuses what `refuses` says. */
async function readBlocks(from: number, to: number, refuses: (from: number, to: number) => boolean) {
  const pages: [number, number][] = []
  let refused = 0
  const found = await createPager()(from, to, async (first, end, last) => {
    if (refuses(first, end)) {
      if (last) throw new Error('refused at one block')
      refused += 1
      return TOO_WIDE
    }
    pages.push([first, end])
    return Array.from({ length: end - first + 1 }, (_, at) => first + at)
  })
  return { found, pages, refused }
}
const blocks = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, at) => from + at)

describe('pages of blocks', () => {
  it('begin with 2,000 and grow by half', async () => {
    const { pages } = await readBlocks(1, 10_000, () => false)
    expect(pages).toEqual([
      [1, 2_000],
      [2_001, 5_000],
      [5_001, 9_500],
      [9_501, 10_000],
    ])
  })

  it.each([1, 7, 50, 1_000, 1_999])('cover every block once with a node that takes %i blocks at most', async (most) => {
    const { found } = await readBlocks(13, 4_500, (from, to) => to - from + 1 > most)
    expect(found).toEqual(blocks(13, 4_500))
  })

  it('get small where logs are dense and grow again behind', async () => {
    const isDense = (from: number, to: number) => from <= 700 && to >= 640 && to > from
    const { found, pages } = await readBlocks(1, 20_000, isDense)
    expect(found).toEqual(blocks(1, 20_000))
    expect(pages.length).toBeLessThan(150)
  })

  it('fail when one block is too much', async () => {
    await expect(readBlocks(1, 10, (from, to) => from <= 5 && to >= 5)).rejects.toThrow('refused at one block')
  })

  it('are none in an empty range', async () => {
    expect(await readBlocks(5, 4, () => false)).toEqual({ found: [], pages: [], refused: 0 })
  })
})
