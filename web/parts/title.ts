import { useEffect } from 'preact/hooks'

/** The title of a page that shows a record, once its name is known. */
export function useTitle(name: string | undefined): void {
  useEffect(() => {
    if (name !== undefined) document.title = `${name} – dao-data`
  }, [name])
}
