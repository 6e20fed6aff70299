import { now } from '../clock.ts'
import { type Kind, toAgo, toDay, toDistinct, toFullNumber, toLocal, toText, toUntil, toUtc } from '../format.ts'

const SIGNED: readonly Kind[] = ['change', 'points', 'usdChange', 'amountChange']

/** Default reason for a missing number. */
const NO_SOURCE = 'No source reports it.'

export function Unknown({ why = NO_SOURCE }: { why?: string | undefined }) {
  return (
    <abbr class="unknown" title={why}>
      not known
    </abbr>
  )
}

/**
 * A number with all its digits as a tooltip; `step` is the distance to numbers beside it. A missing number has its
 * reason as a tooltip.
 */
export function Value(props: { of: number | null | undefined; as: Kind; step?: number; why?: string | undefined }) {
  const { of, as, step, why } = props
  if (of === null || of === undefined) return <Unknown why={why} />
  const sign = SIGNED.includes(as) ? (of > 0 ? 'up' : of < 0 ? 'down' : '') : ''
  const text = step === undefined ? toText(of, as) : toDistinct(of, as, step)
  // Keyed by text: in end-aligned layout a shorter text in the same element would count as a layout shift.
  return (
    <data key={text} value={of} class={sign} title={toFullNumber(of, as)}>
      {text}
    </data>
  )
}

export const Change = ({ of }: { of: number | null | undefined }) => (
  <Value of={of} as="change" why="The history is too short." />
)

interface TimeProps {
  readonly at: string | Date | null | undefined
  readonly why?: string
}

/**
 * A time as text, with its UTC and local form as a tooltip. The tooltip is made when the pointer enters, because the first
 * local time takes a phone a tenth of a second.
 */
function Moment({ at, text, isWhole = false }: { at: Date; text: string; isWhole?: boolean }) {
  const explain = (event: { readonly currentTarget: HTMLElement }) => {
    event.currentTarget.title = `${toUtc(at)}, ${toLocal(at)}`
  }
  return (
    <time class={isWhole ? 'whole' : undefined} dateTime={at.toISOString()} onPointerEnter={explain}>
      {text}
    </time>
  )
}

function Time({ at, why, toWords }: TimeProps & { toWords: (at: Date) => string }) {
  if (at === null || at === undefined) return <Unknown why={why} />
  const date = new Date(at)
  return <Moment at={date} text={toWords(date)} isWhole={toWords === toUtc} />
}

/** A time in UTC, with the reader's local time as a tooltip. */
export const TimeValue = (props: TimeProps) => <Time {...props} toWords={toUtc} />

/** The day of a time in UTC. */
export const DayValue = (props: TimeProps) => <Time {...props} toWords={toDay} />

/** The distance to a coming time. */
export const Until = (props: TimeProps) => <Time {...props} toWords={(at) => toUntil(at, now.value)} />

/** The age of a time. */
export function Ago({ at }: { at: Date }) {
  return <Moment at={at} text={toAgo(at, now.value)} />
}
