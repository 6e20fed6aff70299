import { useEffect, useState } from 'preact/hooks'

/** For how long a button says what came of it. */
const SAID_MS = 4_000

/**
 * What a button that copies says, and what lets it say what came of it: for a while, and of what it is about then alone.
 * Browsers give pages of other hosts no clipboard unless they come encrypted.
 */
export function useCopying(usual: string, refused: string, about: string) {
  const [result, tell] = useState<{ readonly about: string; readonly text: string } | undefined>(undefined)
  useEffect(() => {
    if (result === undefined) return
    const timer = setTimeout(() => tell(undefined), SAID_MS)
    return () => clearTimeout(timer)
  }, [result])
  const copy = async (write: () => Promise<void>) => {
    try {
      await write()
      tell({ about, text: 'Copied' })
    } catch (error) {
      console.warn('it was not copied', error)
      tell({ about, text: refused })
    }
  }
  return { said: result?.about === about ? result.text : usual, copy }
}
