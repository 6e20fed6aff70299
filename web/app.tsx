import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { SITE_PAGES } from '../shared/site-pages.ts'
import { logos } from './logos.ts'
import { DaoPage } from './pages/dao.tsx'
import { Daos } from './pages/daos.tsx'
import { Freshness } from './pages/freshness.tsx'
import { GovernancePage } from './pages/governance-page.tsx'
import { IndexPage } from './pages/index-page.tsx'
import { Overview } from './pages/overview.tsx'
import { ProposalPage } from './pages/proposal.tsx'
import { TokenPage } from './pages/token.tsx'
import { Tokens } from './pages/tokens.tsx'
import { Treasuries } from './pages/treasuries.tsx'
import { VoterPage } from './pages/voter.tsx'
import { Late } from './parts/late.tsx'
import { openSearch, Search } from './parts/search.tsx'
import { Strip } from './parts/strip.tsx'
import { path } from './place.ts'
import { served } from './served.ts'
import { choice, chooseNext } from './theme.ts'

interface Page {
  readonly matches: RegExp
  /** Undefined for a page of one record, which sets the record's name as title. */
  readonly title?: string
  /** The ids in the path. */
  readonly show: (id: string, second: string) => JSX.Element
}

/** A page whose code is loaded when the page is opened. */
const LatePage = ({ load }: { load: () => Promise<() => JSX.Element> }) => (
  <Late what="page" load={load} loading={<p class="state loading">Loading the page …</p>}>
    {(Page) => <Page />}
  </Late>
)

const loadSql = async () => (await import('./pages/sql.tsx')).SqlPage
const loadCompare = async () => (await import('./pages/compare.tsx')).Compare
const loadBaskets = async () => (await import('./pages/baskets.tsx')).BasketsPage
const loadAlerts = async () => (await import('./pages/alerts.tsx')).AlertsPage
const loadProvenance = async () => (await import('./pages/provenance.tsx')).ProvenancePage

const PAGES: readonly Page[] = [
  { matches: /^$/, title: 'Overview', show: () => <Overview /> },
  { matches: /^tokens$/, title: 'Tokens', show: () => <Tokens /> },
  { matches: /^tokens\/([0-9a-f]{24})$/, show: (id) => <TokenPage id={id} /> },
  { matches: /^daos$/, title: 'DAOs', show: () => <Daos /> },
  { matches: /^daos\/([0-9a-f]{24})$/, show: (id) => <DaoPage id={id} /> },
  {
    matches: /^daos\/([0-9a-f]{24})\/proposals\/([0-9a-f]{24})$/,
    show: (dao, id) => <ProposalPage dao={dao} id={id} />,
  },
  { matches: /^governance$/, title: 'Governance', show: () => <GovernancePage /> },
  { matches: /^voters\/(0x[0-9a-f]{40,64})$/i, show: (address) => <VoterPage address={address} /> },
  { matches: /^treasuries$/, title: 'Treasuries', show: () => <Treasuries /> },
  { matches: /^index$/, title: 'Index', show: () => <IndexPage /> },
  { matches: /^compare$/, title: 'Compare', show: () => <LatePage key="compare" load={loadCompare} /> },
  { matches: /^baskets$/, title: 'Baskets', show: () => <LatePage key="baskets" load={loadBaskets} /> },
  { matches: /^freshness$/, title: 'Data', show: () => <Freshness /> },
  { matches: /^alerts$/, title: 'Alerts', show: () => <LatePage key="alerts" load={loadAlerts} /> },
  {
    matches: /^provenance$/,
    title: 'Where from?',
    show: () => <LatePage key="provenance" load={loadProvenance} />,
  },
  { matches: /^sql$/, title: 'SQL', show: () => <LatePage key="sql" load={loadSql} /> },
]

const pageOf = (at: string) => PAGES.find(({ matches }) => matches.test(at))

/** Whether a path is one of these pages; other paths of the host are not. */
export const isPage = (at: string) => pageOf(at) !== undefined

/** The pages that the bar of a phone always shows; a button shows the others. */
const FIRST = 4

/** On a phone, a bar at the bottom. */
function Pages({ at }: { at: string }) {
  const [isOpen, setOpen] = useState(false)
  useEffect(() => setOpen(false), [at])
  // Proposals and voters belong to the page that leads to them.
  const section = /\/proposals\/|^voters\//.test(at) ? 'governance' : at
  const isCurrent = (to: string) => (to === './' ? section === '' : section === to || section.startsWith(`${to}/`))
  return (
    <nav aria-label="Pages" class={isOpen ? 'open' : undefined}>
      {SITE_PAGES.map(([to, text], place) => (
        <a
          key={to}
          href={to}
          class={place < FIRST ? (place === FIRST - 1 ? 'last-first' : undefined) : 'second'}
          aria-current={isCurrent(to) ? 'page' : undefined}
        >
          {text}
        </a>
      ))}
      <button type="button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {isOpen ? 'Less' : 'More'}
      </button>
    </nav>
  )
}

function Top({ at }: { at: string }) {
  return (
    <div class="top">
      <a class="brand" href="./">
        dao-data
      </a>
      <Pages at={at} />
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
    {logos !== undefined && <a href={`logos/${logos}/attribution.json`}>Logos by CoinGecko</a>}
    <span>Times are UTC. Hover for local time.</span>
  </footer>
)

/** A document of a path without a page. */
function Served({ at }: { at: string }) {
  return (
    <>
      {served?.path === at ? (
        // biome-ignore lint/security/noDangerouslySetInnerHtml: the service wrote it, and escapes the path.
        <div class="served" dangerouslySetInnerHTML={{ __html: served.html }} />
      ) : (
        <h1>Page not found</h1>
      )}
      <p>
        <button type="button" onClick={openSearch}>
          Search tokens, DAOs and pages
        </button>
      </p>
    </>
  )
}

export function App() {
  const at = path.value
  const main = useRef<HTMLElement>(null)
  const isFirst = useRef(true)
  const page = pageOf(at)
  const ids = page?.matches.exec(at)?.slice(1) ?? []
  useEffect(() => {
    const title = page === undefined ? served?.title : page.title
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
          Skip to content
        </a>
        <Strip />
        <Top at={at} />
      </header>
      <main ref={main} tabIndex={-1} key={at}>
        {page === undefined ? <Served at={at} /> : page.show(ids[0] ?? '', ids[1] ?? '')}
      </main>
      <Footer />
    </>
  )
}
