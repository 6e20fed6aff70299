import { type Connection, connection } from '../live.ts'
import { isDemo } from '../mode.ts'

const TEXTS: Record<Connection, readonly [text: string, why: string]> = {
  connecting: ['connecting', 'Changes will be shown as they happen.'],
  live: ['live', 'Changes are shown as they happen.'],
  lost: ['connection lost', 'The service is asked every half minute until it can be heard again.'],
  refused: ['every 30 s', 'The service does not tell of changes just now: it is asked every half minute.'],
}

function Live() {
  const [text, why] = TEXTS[connection.value]
  return (
    <span class={`live ${connection.value}`} role="status" title={why}>
      {/* Keyed by text: in end-aligned layout a changed text in the same element would count as a layout shift. */}
      <span key={text}>{text}</span>
    </span>
  )
}

/**
 * The source of the numbers, and the state of the change stream. Readers must not mistake simulated numbers for real
 * ones.
 */
export const Strip = () => (
  <div class={isDemo ? 'strip demo' : 'strip'}>
    <p>
      {isDemo && (
        <>
          <strong>DEMO</strong> – all numbers here are simulated.
        </>
      )}
    </p>
    <Live />
  </div>
)
