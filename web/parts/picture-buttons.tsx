import { toUtc } from '../format.ts'
import { isDemo } from '../mode.ts'
import { useCopying } from './copying.ts'
import type { Origin } from './picture.ts'

function save(name: string, picture: Blob): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(picture)
  link.download = `${name.toLowerCase().replaceAll(/\W+/g, '-')}.png`
  link.click()
  URL.revokeObjectURL(link.href)
}

const COPY = 'Copy picture'

/** Exports a chart as a picture with its title and source. */
export function PictureButtons({ name, take }: { name: string; take: (origin: Origin) => Promise<Blob> | undefined }) {
  const { said, copy } = useCopying(COPY, 'The browser refused: save it', name)
  const toOrigin = () => ({
    notice: isDemo ? 'DEMO: all numbers are simulated.' : undefined,
    source: `dao-data, ${location.host}. Made ${toUtc(new Date())}.`,
  })
  return (
    <>
      <button
        type="button"
        class="plain"
        title="Save picture"
        onClick={() => void take(toOrigin())?.then((picture) => save(name, picture))}
      >
        Save<span class="word"> picture</span>
      </button>{' '}
      <button
        type="button"
        class="plain"
        title={COPY}
        aria-live="polite"
        onClick={() => {
          const picture = take(toOrigin())
          if (picture !== undefined)
            void copy(() => navigator.clipboard.write([new ClipboardItem({ 'image/png': picture })]))
        }}
      >
        {said === COPY ? (
          <>
            Copy<span class="word"> picture</span>
          </>
        ) : (
          said
        )}
      </button>
    </>
  )
}
