import { type Connection, connection } from '../live.ts'
import { isDemo } from '../mode.ts'

const TEXTS: Record<Connection, readonly [text: string, why: string]> = {
  connecting: ['connecting', 'Connecting to the change stream.'],
  live: ['live', 'Changes appear immediately.'],
  lost: ['connection lost', 'Data is requested every 30 s until the stream is back.'],
  refused: ['every 30 s', 'The change stream is not available. Data is requested every 30 s.'],
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
