import type { JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { Compare } from './pages/compare.tsx'
import { DaoPage } from './pages/dao.tsx'
import { Daos } from './pages/daos.tsx'
import { Freshness } from './pages/freshness.tsx'
import { IndexPage } from './pages/index-page.tsx'
import { Overview } from './pages/overview.tsx'
import { TokenPage } from './pages/token.tsx'
import { Tokens } from './pages/tokens.tsx'
import { Search } from './parts/search.tsx'
import { Strip } from './parts/strip.tsx'
import { path } from './place.ts'
import { choice, chooseNext } from './theme.ts'

interface Page {
  readonly matches: RegExp
  /** Undefined for a page of one record, which sets the record's name as title. */
  readonly title?: string
  readonly show: (id: string) => JSX.Element
}

const PAGES: readonly Page[] = [
  { matches: /^$/, title: 'Overview', show: () => <Overview /> },
  { matches: /^tokens$/, title: 'Tokens', show: () => <Tokens /> },
  { matches: /^tokens\/([0-9a-f]{24})$/, show: (id) => <TokenPage id={id} /> },
  { matches: /^daos$/, title: 'DAOs', show: () => <Daos /> },
  { matches: /^daos\/([0-9a-f]{24})$/, show: (id) => <DaoPage id={id} /> },
  { matches: /^index$/, title: 'Index', show: () => <IndexPage /> },
  { matches: /^compare$/, title: 'Compare', show: () => <Compare /> },
  { matches: /^freshness$/, title: 'Data', show: () => <Freshness /> },
]

const IN_HEADER = [
  ['./', 'Overview'],
  ['tokens', 'Tokens'],
  ['daos', 'DAOs'],
  ['index', 'Index'],
  ['compare', 'Compare'],
  ['freshness', 'Data'],
] as const

const pageOf = (at: string) => PAGES.find(({ matches }) => matches.test(at))

/** Whether a path is one of these pages; other paths of the host are not. */
export const isPage = (at: string) => pageOf(at) !== undefined

function Top({ at }: { at: string }) {
  const isCurrent = (to: string) => (to === './' ? at === '' : at === to || at.startsWith(`${to}/`))
  return (
    <div class="top">
      <a class="brand" href="./">
        dao-data
      </a>
      <nav aria-label="Pages">
        {IN_HEADER.map(([to, text]) => (
          <a key={to} href={to} aria-current={isCurrent(to) ? 'page' : undefined}>
            {text}
          </a>
        ))}
      </nav>
      <Search />
      <button type="button" onClick={chooseNext} aria-label={`Colours: ${choice.value}. Change`}>
        {{ system: '◐', light: '☀', dark: '☾' }[choice.value]}
      </button>
    </div>
  )
}

const Footer = () => (
  <footer class="foot">
    <a href="reference">Reference</a>
    <a href="guides/first-request">Guides</a>
    <a href="openapi.json">OpenAPI</a>
    <a href="llms.txt">llms.txt</a>
    <span>Times are UTC; point at one for your own.</span>
  </footer>
)

export function App() {
  const at = path.value
  const main = useRef<HTMLElement>(null)
  const isFirst = useRef(true)
  const page = pageOf(at)
  useEffect(() => {
    const title = page === undefined ? 'Not found' : page.title
    if (title !== undefined) document.title = `${title} – dao-data`
    // Moves the focus, so that screen readers announce the new page.
    if (!isFirst.current) main.current?.focus({ preventScroll: true })
    isFirst.current = false
  }, [at])
  return (
    <>
      <header>
        <a
          class="skip"
          href={at === '' ? './' : at}
          onClick={(event) => {
            event.preventDefault()
            main.current?.focus()
          }}
        >
          To the content
        </a>
        <Strip />
        <Top at={at} />
      </header>
      <main ref={main} tabIndex={-1} key={at}>
        {page === undefined ? <h1>There is no such page</h1> : page.show(page.matches.exec(at)?.[1] ?? '')}
      </main>
      <Footer />
    </>
  )
}
