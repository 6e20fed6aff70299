/** The menus of the page: `details` elements that float over the content. */
const OPEN = 'details.drop[open]'

function closeOthers(kept: Element | undefined): void {
  for (const menu of document.querySelectorAll<HTMLDetailsElement>(OPEN)) if (menu !== kept) menu.open = false
}

/** A menu closes by Escape, by a click outside, and when another one opens. */
export function closeMenus(): void {
  document.addEventListener('click', ({ target }) => {
    closeOthers(target instanceof Element ? (target.closest(OPEN) ?? undefined) : undefined)
  })
  // The event does not bubble.
  document.addEventListener(
    'toggle',
    ({ target }) => {
      if (target instanceof HTMLDetailsElement && target.matches(OPEN)) closeOthers(target)
    },
    { capture: true },
  )
  document.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape') return
    const menu = [...document.querySelectorAll<HTMLDetailsElement>(OPEN)].at(-1)
    if (menu === undefined) return
    const isInside = menu.contains(document.activeElement)
    menu.open = false
    // The focused element disappears with its menu.
    if (isInside) menu.querySelector('summary')?.focus()
  })
}
