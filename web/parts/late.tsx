import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'

/** Code that could not be loaded. After an upgrade only a new document has its current URL. */
export const NotLoaded = ({ what, why }: { what: string; why: string }) => (
  <div class="state failed" role="alert">
    <p>
      The {what} could not be loaded: {why}
    </p>
    <button type="button" onClick={() => location.reload()}>
      Load the page again
    </button>
  </div>
)

/** Content whose code is loaded when it is shown, because few pages need it. `load` must not change. */
export function Late<T>(props: {
  what: string
  load: () => Promise<T>
  loading: ComponentChildren
  children: (loaded: T) => ComponentChildren
}) {
  const { what, load, loading, children } = props
  const [state, setState] = useState<{ readonly loaded: T } | { readonly why: string } | undefined>(undefined)
  useEffect(() => {
    load().then(
      (loaded) => setState({ loaded }),
      (error: unknown) => setState({ why: error instanceof Error ? error.message : String(error) }),
    )
  }, [])
  if (state === undefined) return loading
  return 'why' in state ? <NotLoaded what={what} why={state.why} /> : children(state.loaded)
}
