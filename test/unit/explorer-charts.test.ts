import { describe, expect, it } from 'vitest'
import { describeDrawing, describePoint, describe as inWords, toConcentration } from '../../web/parts/drawing.ts'
import { layTiles, type Tile } from '../../web/parts/tiles.ts'

const SIZE = { width: 1000, height: 400 }
const toItems = (...values: readonly (number | null)[]) => values.map((value, at) => ({ name: `item ${at}`, value }))
const areaOf = ({ width, height }: Tile<unknown>) => width * height

describe('layTiles', () => {
  it('covers the map with areas in proportion to the values, largest first and without overlap', () => {
    const { tiles, invisible } = layTiles(toItems(10, 60, 5, 25), SIZE)
    expect(tiles.map(({ value }) => value)).toEqual([60, 25, 10, 5])
    expect(invisible).toEqual([])
    // The gaps between the tiles and whole pixels take a few percent.
    for (const tile of tiles) expect(areaOf(tile) / (SIZE.width * SIZE.height)).toBeCloseTo(tile.value / 100, 1)
    expect(Math.max(...tiles.map(({ left, width }) => left + width))).toBe(SIZE.width)
    expect(Math.max(...tiles.map(({ top, height }) => top + height))).toBe(SIZE.height)
    const isApart = (a: Tile<unknown>, b: Tile<unknown>) =>
      a.left + a.width <= b.left || b.left + b.width <= a.left || a.top + a.height <= b.top || b.top + b.height <= a.top
    for (const [at, tile] of tiles.entries())
      for (const other of tiles.slice(at + 1)) expect(isApart(tile, other)).toBe(true)
  })

  it('merges small items into the last tile, and shows no tile that is too small', () => {
    const ones = Array.from({ length: 30 }, () => 1)
    const { tiles, invisible } = layTiles(toItems(1000, 900, ...ones), SIZE)
    expect(tiles.map(({ items, value }) => [items.length, value])).toEqual([
      [1, 1000],
      [1, 900],
      [30, 30],
    ])
    expect(invisible).toEqual([])
    const lone = layTiles(toItems(1000, 900, 1), SIZE)
    expect(lone.tiles.map(({ value }) => value)).toEqual([1000, 900])
    expect(lone.invisible).toEqual([{ name: 'item 2', value: 1 }])
    // On a small map all items are too small.
    const tiny = layTiles(toItems(100, 60, 50), { width: 60, height: 60 })
    expect(tiny.tiles.map(({ items }) => items.length)).toEqual([3])
  })

  it('leaves out items without a known value above 0', () => {
    const { tiles, invisible } = layTiles(toItems(null, 3, 0, -2), SIZE)
    expect(tiles.map(({ items }) => items[0]?.name)).toEqual(['item 1'])
    expect(invisible).toEqual([])
    expect(layTiles(toItems(null, 0), SIZE)).toEqual({ tiles: [], invisible: [] })
  })
})

describe('toConcentration', () => {
  it('adds up the values by rank, largest first, without unknown ones', () => {
    const drawing = toConcentration([20, null, 50, 10], { name: 'share', as: 'percent' })
    expect(drawing).toMatchObject({ times: [1, 2, 3], lines: [{ name: 'share', values: [50, 70, 80] }] })
    expect(describePoint(drawing, 1)).toBe('Largest 2: share 70.00 %')
    expect(inWords('Sample', drawing)).toContain('Ranks 1 to 3, 0 without a value')
    expect(describeDrawing(drawing)).toBe('From left to right: the 1 to 3 largest together.')
    expect(toConcentration([], { name: 'share', as: 'percent' }).times).toEqual([])
  })
})
