import { toFullNumber, toUtc } from '../format.ts'
import { isDemo } from '../mode.ts'
import { go, query, toAbsolute, withQuery } from '../place.ts'
import { useCopying } from './copying.ts'
import { type Drawing, toAxisText } from './drawing.ts'

const toSlug = (name: string) => name.toLowerCase().replaceAll(/\W+/g, '-')

/** The point of a chart that the address cites: -1 if it is before the range, undefined if it is of no or another chart. */
export function citedPoint(name: string, { axis, times }: Drawing): number | undefined {
  if (axis === 'rank' || query.value.get('chart') !== toSlug(name)) return undefined
  const time = Date.parse(query.value.get('at') ?? '') / 1000
  return Number.isNaN(time) ? undefined : times.findLastIndex((one) => one <= time)
}

const toPlace = (name: string, time: number) =>
  withQuery({ chart: toSlug(name), at: new Date(time * 1000).toISOString().replace('.000Z', 'Z') })

/** Puts a point into the address, or takes it out. */
export function cite(name: string, time: number | undefined): void {
  const place = time === undefined ? withQuery({ chart: undefined, at: undefined }) : toPlace(name, time)
  go(place, { replaces: true })
}

/** The values of a point with all their digits, its time, its source and its address. */
function toCitation(name: string, drawing: Drawing, at: number): string {
  const values = drawing.lines.map(({ name: line, values: { [at]: value = null } }) => {
    const text = value === null ? 'not known' : toFullNumber(value, drawing.as)
    return drawing.lines.length === 1 ? text : `${line} ${text}`
  })
  const address = toAbsolute(toPlace(name, drawing.times[at] ?? 0))
  const notice = isDemo ? ' DEMO: all numbers are simulated.' : ''
  const time = toAxisText(drawing, drawing.times[at])
  return `${name}: ${values.join(', ')}, ${time}. Source: dao-data, ${address}, read ${toUtc(new Date())}.${notice}`
}

/** Returns the page of where the value at a time (Unix seconds) comes from; undefined if there is none. */
export type ToOrigin = (time: number) => string | undefined

/** The cited point below its chart, to copy as a text, to trace or to remove. */
export function Cited(props: { name: string; drawing: Drawing; at: number; toOrigin: ToOrigin | undefined }) {
  const { name, drawing, at, toOrigin } = props
  const hasValue = drawing.lines.some(({ values: { [at]: value = null } }) => value !== null)
  const origin = hasValue ? toOrigin?.(drawing.times[at] ?? 0) : undefined
  const citation = at < 0 ? '' : toCitation(name, drawing, at)
  const { said, copy } = useCopying('Copy citation', 'The browser refused: select the text', citation)
  return (
    <div class="cited">
      <p>{at < 0 ? 'The cited point is before this range.' : citation}</p>
      {at >= 0 && (
        <button type="button" aria-live="polite" onClick={() => copy(() => navigator.clipboard.writeText(citation))}>
          {said}
        </button>
      )}
      {origin !== undefined && <a href={origin}>Where from?</a>}
      <button type="button" onClick={() => cite(name, undefined)}>
        Remove
      </button>
    </div>
  )
}
