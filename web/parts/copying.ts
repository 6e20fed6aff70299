import { useEffect, useState } from 'preact/hooks'

/** Time for which a button shows the result, in milliseconds. */
const SAID_MS = 4_000

/**
 * The label of a copy button, and a function that shows the result for `SAID_MS`, unless the content changes before.
 * Browsers allow clipboard access for remote hosts only over HTTPS.
 */
export function useCopying(usual: string, refused: string, about: string) {
  const [result, setResult] = useState<{ readonly about: string; readonly text: string } | undefined>(undefined)
  useEffect(() => {
    if (result === undefined) return
    const timer = setTimeout(() => setResult(undefined), SAID_MS)
    return () => clearTimeout(timer)
  }, [result])
  const copy = async (write: () => Promise<void>) => {
    try {
      await write()
      setResult({ about, text: 'Copied' })
    } catch (error) {
      console.warn('it was not copied', error)
      setResult({ about, text: refused })
    }
  }
  return { said: result?.about === about ? result.text : usual, copy }
}
