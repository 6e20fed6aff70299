import { useEffect } from 'preact/hooks'

/** Sets the title of a page for one record: its name, when it is known whether the record exists. */
export function useTitle(records: readonly { readonly name: string }[] | undefined): void {
  const title = records && (records[0]?.name ?? 'Not found')
  useEffect(() => {
    if (title !== undefined) document.title = `${title} – dao-data`
  }, [title])
}
