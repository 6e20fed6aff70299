import { computed, effect, signal } from '@preact/signals'
import { isEmbed, query } from './place.ts'

/** The reader's choice; default: the system's theme. */
export type Choice = 'system' | 'light' | 'dark'

const KEY = 'dao-data-theme'
const isChoice = (text: string | null): text is Choice => text === 'light' || text === 'dark' || text === 'system'

function readChoice(): Choice {
  // The page around an embedded chart selects its theme.
  if (isEmbed) {
    const theme = query.peek().get('theme')
    return isChoice(theme) ? theme : 'system'
  }
  try {
    const text = localStorage.getItem(KEY)
    return isChoice(text) ? text : 'system'
  } catch {
    // If the browser has no storage, no choice is saved.
    return 'system'
  }
}

function keep(value: Choice): void {
  try {
    localStorage.setItem(KEY, value)
  } catch (error) {
    console.warn('the theme holds until the page is closed', error)
  }
}

export const choice = signal<Choice>(readChoice())

const system = matchMedia('(prefers-color-scheme: dark)')
const systemIsDark = signal(system.matches)
system.addEventListener('change', ({ matches }) => {
  systemIsDark.value = matches
})

/** The active theme. */
export const theme = computed(() =>
  choice.value === 'system' ? (systemIsDark.value ? 'dark' : 'light') : choice.value,
)

effect(() => {
  document.documentElement.dataset.theme = choice.value
})

const NEXT: Record<Choice, Choice> = { system: 'light', light: 'dark', dark: 'system' }

export function chooseNext(): void {
  choice.value = NEXT[choice.value]
  keep(choice.value)
}
