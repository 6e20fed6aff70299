// The links beside a page: a filter, the place of the shown page, and links of the time when all operations were one page.

const links = /** @type {HTMLDetailsElement} */ (document.querySelector('nav.side details'))
const side = /** @type {HTMLElement} */ (links.parentElement)

/** The heading of each list, and its entries with the words by which they are found. */
const lists = [...links.querySelectorAll('ul')].map((list) => ({
  list,
  heading: list.previousElementSibling,
  entries: [...list.children].map((entry) => ({
    entry,
    words: `${entry.textContent} ${entry.firstElementChild?.getAttribute('href')}`.toLowerCase(),
  })),
}))

/** @param {string} text */
function filter(text) {
  const wanted = text.toLowerCase().split(/\s+/)
  let first
  for (const { list, heading, entries } of lists) {
    let count = 0
    for (const { entry, words } of entries) {
      const isShown = wanted.every((word) => words.includes(word))
      entry.hidden = !isShown
      if (!isShown) continue
      count += 1
      first ??= entry.firstElementChild
    }
    list.hidden = count === 0
    if (heading instanceof HTMLElement) heading.hidden = count === 0
  }
  nothing.hidden = first !== undefined
  return first
}

const nothing = document.createElement('p')
nothing.textContent = 'No match.'
nothing.setAttribute('role', 'status')
nothing.hidden = true
const box = document.createElement('input')
box.type = 'search'
box.placeholder = 'Filter'
box.autocomplete = 'off'
box.setAttribute('aria-label', 'Filter the links')
box.addEventListener('input', () => filter(box.value))
box.addEventListener('keydown', (event) => {
  if (event.key === 'Enter' && box.value !== '') filter(box.value)?.click()
  if (event.key !== 'Escape') return
  box.value = ''
  filter('')
})
links.querySelector('summary')?.after(box, nothing)

// On a phone the links would fill the first screens, so they are closed by default.
if (matchMedia('(max-width: 52rem)').matches) links.open = false

// Scrolls only the links: `scrollIntoView` would scroll the page too.
const current = links.querySelector('[aria-current]')
if (current !== null) side.scrollTop = current.getBoundingClientRect().top - side.clientHeight / 3

/** Opens the page of an operation if the address is an older one: `/reference#listTokens`. */
function openOlder() {
  const entry = location.hash === '' ? null : document.getElementById(location.hash.slice(1))
  const link = entry?.matches('.operations li') ? entry.querySelector('a') : null
  if (link) location.replace(link.href)
}
addEventListener('hashchange', openOlder)
openOlder()

document.addEventListener('keydown', (event) => {
  const isTyping = event.target instanceof Element && event.target.matches('input, select')
  const isCommand = (event.metaKey || event.ctrlKey) && event.key.toLowerCase() === 'k'
  if (!isCommand && (event.key !== '/' || isTyping)) return
  event.preventDefault()
  location.assign(/** @type {HTMLAnchorElement} */ (document.querySelector('.top .search')).href)
})
