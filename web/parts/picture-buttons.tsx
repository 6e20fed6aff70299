import { useState } from 'preact/hooks'
import { toUtc } from '../format.ts'
import { isDemo } from '../mode.ts'

function save(name: string, picture: Blob): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(picture)
  link.download = `${name.toLowerCase().replaceAll(/\W+/g, '-')}.png`
  link.click()
  URL.revokeObjectURL(link.href)
}

/** Browsers give pages of other hosts no clipboard unless they come encrypted. */
async function copy(picture: Promise<Blob>): Promise<string> {
  try {
    await navigator.clipboard.write([new ClipboardItem({ 'image/png': picture })])
    return 'Copied'
  } catch (error) {
    console.warn('the picture was not copied', error)
    return 'The browser refused: save it'
  }
}

/** Takes a chart along as a picture, which says what it shows and where it is from. */
export function PictureButtons({ name, take }: { name: string; take: (source: string) => Promise<Blob> | undefined }) {
  const [said, say] = useState('Copy picture')
  const toSource = () => {
    const source = `dao-data, ${location.host}. Made ${toUtc(new Date())}.`
    return isDemo ? `${source} DEMO: all numbers are simulated.` : source
  }
  return (
    <>
      <button type="button" class="plain" onClick={() => void take(toSource())?.then((picture) => save(name, picture))}>
        Save picture
      </button>{' '}
      <button
        type="button"
        class="plain"
        aria-live="polite"
        onClick={() => {
          const picture = take(toSource())
          if (picture !== undefined) void copy(picture).then(say)
        }}
      >
        {said}
      </button>
    </>
  )
}
