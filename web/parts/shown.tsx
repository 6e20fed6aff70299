import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { AnswerState, Failure, ReceivedAnswer } from '../answers.ts'
import { Ago } from './value.tsx'

const SLOW_MS = 3_000

/** Height of a table row, including its border. */
const ROW_REM = 2.15

function Loading(props: { what: string; rows: number | undefined; outline: ComponentChildren }) {
  const { what, rows, outline } = props
  const [isSlow, setSlow] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setSlow(true), SLOW_MS)
    return () => clearTimeout(timer)
  }, [])
  const text = isSlow ? `Still loading ${what}: the service is slow.` : `Loading ${what}…`
  if (outline !== undefined)
    return (
      <div class="loading">
        <p class="hidden" role="status">
          {text}
        </p>
        {outline}
      </div>
    )
  return (
    <p
      class="state loading"
      role="status"
      style={rows === undefined ? undefined : { minHeight: `${(rows + 1) * ROW_REM}rem` }}
    >
      {text}
    </p>
  )
}

/** `of` names the failed part if there are several. */
export function Failed({ failure, retry, of }: { failure: Failure; retry: () => void; of?: string | undefined }) {
  return (
    <div class="state failed" role="alert">
      <p>
        {of !== undefined && `${of}: `}
        <strong>{failure.title}.</strong> {failure.detail}
        {failure.requestId !== undefined && <small> Request {failure.requestId}</small>}
      </p>
      <button type="button" onClick={retry}>
        Try again
      </button>
    </div>
  )
}

/** The time of the data, with a mark if the data is stale. */
export function DataTime({ facts }: { facts: ReceivedAnswer<unknown>['facts'] | undefined }) {
  // A placeholder reserves the space until the time is known.
  if (facts?.asOf === undefined) return <span class="badge blank">as of</span>
  return (
    <span key={facts.isStale} class={facts.isStale ? 'badge stale' : 'badge'}>
      {facts.isStale ? 'stale: ' : 'as of '}
      <Ago at={facts.asOf} />
    </span>
  )
}

/** Whether there is no data to show: the answer is empty, or its code is `no_data`. */
export const isNone = ({ received, failure }: AnswerState<readonly unknown[]>) =>
  received === undefined
    ? failure?.code === 'no_data'
    : received.data.length === 0 || (received.facts.points === 0 && (received.facts.missing ?? 0) > 0)

/**
 * The state of an answer whose rows show names from another one: loading until the names have arrived or failed, because
 * a later name would move rows and columns. `names` is undefined if the rows need none.
 */
export const withNames = <T,>(of: AnswerState<T>, names: AnswerState<unknown> | undefined): AnswerState<T> =>
  names === undefined || names.received || names.failure ? of : { ...of, received: undefined }

/**
 * The state of an answer: loading, failed, empty, or shown. A previous answer is shown with a note while a newer one is
 * loading or after it has failed.
 */
export function Shown<T>(props: {
  of: AnswerState<T>
  what: string
  isEmpty?: (data: T) => boolean
  /** Text for an empty answer. */
  empty?: string
  /** Expected rows of a table, so that the content below does not move. */
  rows?: number
  /** Placeholder content while the values are loading, for the same reason. */
  outline?: ComponentChildren
  children: (data: T, facts: ReceivedAnswer<T>['facts']) => ComponentChildren
}) {
  const { received, failure, isBefore, retry } = props.of
  // `no_data` is a regular answer; a retry would not change it.
  if (received === undefined && failure?.code === 'no_data')
    return <p class="state empty">Not known: {failure.detail}</p>
  if (received === undefined)
    return failure === undefined ? (
      <Loading what={props.what} rows={props.rows} outline={props.outline} />
    ) : (
      <Failed failure={failure} retry={retry} />
    )
  return (
    <div class="shown" aria-busy={isBefore}>
      {failure !== undefined && <Failed failure={failure} retry={retry} />}
      {props.isEmpty?.(received.data) === true ? (
        <p class="state empty">{props.empty ?? `No ${props.what} match.`}</p>
      ) : (
        props.children(received.data, received.facts)
      )}
    </div>
  )
}
