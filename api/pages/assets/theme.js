// Runs before the first paint. The page has the same choice, in web/theme.ts.
const KEY = 'dao-data-theme'
const NEXT = { system: 'light', light: 'dark', dark: 'system' }
const SIGNS = { system: '◐', light: '☀', dark: '☾' }

function readTheme() {
  try {
    const text = localStorage.getItem(KEY)
    return text in NEXT ? text : 'system'
  } catch {
    // If the browser has no storage, no choice is saved.
    return 'system'
  }
}

function show(theme) {
  document.documentElement.dataset.theme = theme
  const button = document.querySelector('.top button')
  if (button === null) return
  button.textContent = SIGNS[theme]
  button.setAttribute('aria-label', `Colours: ${theme}. Change`)
}

let theme = readTheme()
show(theme)
// Marks the page for its style until the deferred scripts have run, which is before DOMContentLoaded.
document.documentElement.classList.add('loading')
addEventListener('DOMContentLoaded', () => {
  document.documentElement.classList.remove('loading')
  show(theme)
  document.querySelector('.top button')?.addEventListener('click', () => {
    theme = NEXT[theme]
    show(theme)
    try {
      localStorage.setItem(KEY, theme)
    } catch (error) {
      console.warn('the theme holds until the page is closed', error)
    }
  })
})
