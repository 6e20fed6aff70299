import { useEffect } from 'preact/hooks'

/** The title of a page that shows one record: its name, once it is known whether there is one. */
export function useTitle(records: readonly { readonly name: string }[] | undefined): void {
  const title = records && (records[0]?.name ?? 'Not found')
  useEffect(() => {
    if (title !== undefined) document.title = `${title} – dao-data`
  }, [title])
}
