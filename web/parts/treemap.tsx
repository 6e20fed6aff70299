import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { type Kind, toCounted, toText } from '../format.ts'
import { toNext } from './chart.tsx'
import { layTiles, type Tile } from './tiles.ts'
import { Value } from './value.tsx'
import '../styles/treemap.css'

/** A rectangle with a link. Its area is its value. */
export interface Cell {
  readonly key: string
  readonly name: string
  /** Address of its page. */
  readonly to: string
  /** Null if it is unknown. */
  readonly value: number | null
  /** Fractions of 1 in the order of the key; undefined if they are unknown. */
  readonly shares: readonly number[] | undefined
}

type Size = { readonly width: number; readonly height: number }

/** Stripes in the colours of the key, as wide as the shares. */
function toStripes(shares: readonly number[]): string {
  let from = 0
  const stripes = shares.map((share, at) => {
    const to = from + 100 * share
    const stripe = `var(--area-${at + 1}) ${from}% ${to}%`
    from = to
    return stripe
  })
  return `linear-gradient(to right, ${stripes.join(', ')})`
}

const NO_SHARES = 'its parts are not known'

/** Before the size of the map is known. */
const NO_TILES: ReturnType<typeof layTiles<Cell>> = { tiles: [], invisible: [] }

const describeShares = ({ shares }: Cell, parts: readonly string[]) =>
  shares === undefined ? NO_SHARES : parts.map((part, at) => `${part} ${toText(shares[at] ?? 0, 'share')}`).join(', ')

/** A tile of one cell shows it; the last tile may have several. */
const cellOf = ({ items }: Tile<Cell>) => (items.length === 1 ? items[0] : undefined)

const nameOf = (tile: Tile<Cell>) => cellOf(tile)?.name ?? toCounted(tile.items.length, 'other')

/** The size of an element, as soon as it is in the document. */
function useSize(place: { readonly current: HTMLElement | null }): Size | undefined {
  const [size, setSize] = useState<Size | undefined>(undefined)
  useLayoutEffect(() => {
    const element = place.current
    if (element === null) return
    const measure = () => {
      // On paper the tiles are scaled, because their places are in percent.
      if (!matchMedia('print').matches) setSize({ width: element.clientWidth, height: element.clientHeight })
    }
    measure()
    const watcher = new ResizeObserver(measure)
    watcher.observe(element)
    return () => watcher.disconnect()
  }, [])
  return size
}

/**
 * Values as areas: each cell is a link, its stripes are the parts of the key. One stop of the Tab key; the arrow keys move
 * between cells, largest first, and Enter opens one.
 */
export function Treemap(props: { name: string; cells: readonly Cell[]; as: Kind; parts: readonly string[] }) {
  const { name, cells, as, parts } = props
  const place = useRef<HTMLUListElement>(null)
  const size = useSize(place)
  const [at, setAt] = useState(0)
  const { tiles, invisible } = useMemo(() => (size === undefined ? NO_TILES : layTiles(cells, size)), [cells, size])
  const lastLink = tiles.findLastIndex((tile) => cellOf(tile) !== undefined)
  const here = Math.min(at, tiles.length - 1)
  const pointed = tiles[here]
  const shares = pointed && cellOf(pointed)?.shares
  const toPercent = (part: number, of: keyof Size) => `${(100 * part) / (size?.[of] || 1)}%`
  const onKeyDown = (event: KeyboardEvent) => {
    const next = toNext(event.key, here, lastLink)
    if (next === undefined) return
    event.preventDefault()
    place.current?.querySelectorAll('a')[next]?.focus()
  }
  if (!cells.some(({ value }) => (value ?? 0) > 0)) return <p class="state empty">No known values.</p>
  return (
    <>
      <ul class="treemap" ref={place} aria-label={name}>
        {tiles.map((tile, index) => {
          const cell = cellOf(tile)
          const content = (
            <>
              <b title={nameOf(tile)}>{nameOf(tile)}</b> <Value of={tile.value} as={as} />
            </>
          )
          const point = () => setAt(index)
          const style = {
            left: toPercent(tile.left, 'width'),
            top: toPercent(tile.top, 'height'),
            width: toPercent(tile.width, 'width'),
            height: toPercent(tile.height, 'height'),
          }
          return (
            <li key={cell?.key ?? 'rest'} style={style}>
              {cell === undefined ? (
                <span class="tile" onPointerEnter={point}>
                  {content}
                </span>
              ) : (
                <a
                  class="tile"
                  href={cell.to}
                  // The pointed tile may be the last one, which is no link.
                  tabIndex={index === Math.min(here, lastLink) ? 0 : -1}
                  style={{ backgroundImage: cell.shares === undefined ? 'none' : toStripes(cell.shares) }}
                  onFocus={point}
                  onPointerEnter={point}
                  onKeyDown={onKeyDown}
                >
                  {content}
                  <span class="hidden">{describeShares(cell, parts)}</span>
                </a>
              )}
            </li>
          )
        })}
      </ul>
      {/* The link under the cursor has the same text. */}
      <p class="point" aria-hidden="true">
        {pointed !== undefined && `${nameOf(pointed)}: ${toText(pointed.value, as)}`}
      </p>
      <ul class="key">
        {parts.map((part, index) => (
          <li key={part}>
            {part} <b aria-hidden="true">{shares === undefined ? '' : toText(shares[index] ?? 0, 'share')}</b>
          </li>
        ))}
      </ul>
      {invisible.length > 0 && <p class="note">Too small to be seen: {toCounted(invisible.length, 'other')}.</p>}
    </>
  )
}
