import { hierarchy, treemap } from 'd3-hierarchy'

/** A rectangle of a treemap, in pixels: of one item, or of all items that are too small for a separate rectangle. */
export interface Tile<T> {
  readonly items: readonly T[]
  readonly value: number
  readonly left: number
  readonly top: number
  readonly width: number
  readonly height: number
}

interface Node<T> {
  readonly items: readonly T[]
  readonly value: number
  readonly children?: readonly Node<T>[]
}

/** The smallest area of a tile in square pixels, so that a finger hits it and a short name fits. */
const LEAST_AREA = 44 * 44
/** Between two tiles. */
const GAP = 2

/** The tiles of a map, largest first, and the items that even together are too small for a tile. */
interface Layout<T> {
  readonly tiles: readonly Tile<T>[]
  readonly invisible: readonly T[]
}

/**
 * Lays out items as rectangles with areas in proportion to their values. The items that would be too small share the last
 * tile. Items with an unknown value, or without one above 0, have no area.
 */
export function layTiles<T extends { readonly value: number | null }>(
  items: readonly T[],
  { width, height }: { readonly width: number; readonly height: number },
): Layout<T> {
  const nodes = items
    .map((item): Node<T> => ({ items: [item], value: item.value ?? 0 }))
    .filter(({ value }) => value > 0)
    .sort((a, b) => b.value - a.value)
  const sumOf = (some: readonly Node<T>[]) => some.reduce((sum, { value }) => sum + value, 0)
  const least = (LEAST_AREA * sumOf(nodes)) / (width * height)
  const isVisible = ({ value }: Node<T>) => value >= least
  const large = nodes.filter(isVisible)
  const small = nodes.slice(large.length)
  const rest = { items: small.flatMap((node) => node.items), value: sumOf(small) }
  const shown = small.length > 0 && isVisible(rest) ? [...large, rest] : large
  const root = hierarchy<Node<T>>({ items: [], value: 0, children: shown }, ({ children }) => children)
  // A parent's own value is 0: it is the sum of its children.
  const laid = treemap<Node<T>>().size([width, height]).paddingInner(GAP).round(true)(root.sum(({ value }) => value))
  return {
    tiles: (laid.children ?? []).map(({ data, x0, x1, y0, y1 }) => ({
      ...{ items: data.items, value: data.value },
      ...{ left: x0, top: y0, width: x1 - x0, height: y1 - y0 },
    })),
    invisible: isVisible(rest) ? [] : rest.items,
  }
}
