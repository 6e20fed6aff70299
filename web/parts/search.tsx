import { createRef } from 'preact'
import { useEffect, useLayoutEffect, useState } from 'preact/hooks'
import { toShort } from '../format.ts'
import { go, query, withQuery } from '../place.ts'
import { toFormer, useFound, useFoundOperations, useFoundProposals } from './found.ts'
import { Mark } from './mark.tsx'

const PAGES = [
  { to: './', text: 'Overview' },
  { to: 'tokens', text: 'Tokens' },
  { to: 'daos', text: 'DAOs' },
  { to: 'daos?about=fees', text: 'Fees and treasuries of DAOs: ranking' },
  { to: 'daos?about=ratings', text: 'Ratings of DAOs' },
  { to: 'daos?about=communities', text: 'Communities of DAOs: Twitter and Discord' },
  { to: 'governance', text: 'Governance: active votes and results' },
  { to: 'treasuries', text: 'Treasuries by kind of asset' },
  { to: 'index', text: 'Index' },
  { to: 'compare', text: 'Compare' },
  { to: 'baskets', text: 'Baskets: back-test of an own index' },
  { to: 'freshness', text: 'Data: freshness and gaps' },
  { to: 'alerts', text: 'Alerts: fired ones, rules, a form that writes rules' },
  { to: 'sql', text: 'SQL over the published files' },
  { to: 'reference', text: 'Reference of the API' },
  { to: 'guides/first-request', text: 'Guides' },
  { to: 'guides/index-methodology', text: 'Methodology of the Index' },
  { to: 'docs/errors', text: 'Error codes of the API' },
] as const

const IS_SERVED_ELSEWHERE = /^(?:reference|guides|docs)/

/** An account of an EVM chain or of Starknet. */
const ADDRESS = /^0x[0-9a-f]{40,64}$/i

interface Hit {
  readonly to: string
  readonly text: string
  readonly note: string
  readonly id?: string
}

function useHits(words: string): { hits: Hit[]; state: string; isSearching: boolean } {
  const { records, failure, isSearching } = useFound(words)
  // No title is an address.
  const proposals = useFoundProposals(ADDRESS.test(words.trim()) ? '' : words)
  const operations = useFoundOperations(words)
  const pages = PAGES.filter(({ text }) => text.toLowerCase().includes(words.trim().toLowerCase()))
  const hits = [
    ...records.map((record) => ({
      to: `${record.type}s/${record._id}`,
      text: record.symbol === null ? record.name : `${record.name} (${record.symbol})`,
      note: `${record.type === 'dao' ? 'DAO' : 'Token'}${toFormer(record)}`,
      id: record._id,
    })),
    ...(ADDRESS.test(words.trim())
      ? [{ to: `voters/${words.trim()}`, text: toShort(words.trim()), note: 'Votes and delegations of the address' }]
      : []),
    ...pages.map(({ to, text }) => ({ to, text, note: 'Page' })),
    ...proposals.records.map((proposal) => ({
      to: `daos/${proposal.dao}/proposals/${proposal._id}`,
      text: proposal.title,
      note: 'flagged' in proposal && proposal.flagged === true ? 'Flagged proposal' : 'Proposal',
    })),
    ...operations.map(({ operationId, path, summary }) => ({
      to: `reference/${operationId}`,
      text: summary,
      note: `GET ${path}`,
    })),
  ]
  const nothing = hits.length === 0 ? 'No match.' : ''
  const status = failure === undefined ? nothing : `${failure.title}: ${failure.detail}`
  const isWaiting = isSearching || (hits.length === 0 && proposals.isSearching)
  return { hits, state: isWaiting ? 'Searching…' : status, isSearching: isWaiting }
}

function open({ to }: Hit): void {
  if (IS_SERVED_ELSEWHERE.test(to)) location.assign(new URL(to, document.baseURI))
  else go(to)
}

function SearchBox({ close }: { close: () => void }) {
  const [words, setWords] = useState('')
  const [at, setAt] = useState(0)
  const [isEntered, setEntered] = useState(false)
  const { hits, state, isSearching } = useHits(words)
  const chosen = Math.min(at, hits.length - 1)
  const take = (hit: Hit | undefined) => {
    if (hit === undefined) return
    close()
    open(hit)
  }
  // If the reader presses Enter before the results arrive, the selected result is opened on arrival.
  useEffect(() => {
    if (isEntered && !isSearching) take(hits[chosen])
  }, [isEntered, isSearching])
  useEffect(() => document.getElementById(`hit-${chosen}`)?.scrollIntoView({ block: 'nearest' }), [chosen])
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'ArrowDown') setAt((chosen + 1) % Math.max(1, hits.length))
    else if (event.key === 'ArrowUp') setAt((chosen - 1 + hits.length) % Math.max(1, hits.length))
    else if (event.key === 'Enter') setEntered(true)
    else return
    event.preventDefault()
  }
  return (
    <>
      <input
        type="text"
        role="combobox"
        aria-label="Search tokens, DAOs, proposals, pages and operations"
        aria-expanded="true"
        aria-controls="hits"
        aria-activedescendant={chosen >= 0 ? `hit-${chosen}` : undefined}
        placeholder="Name, symbol or address"
        autocomplete="off"
        value={words}
        onInput={({ currentTarget }) => {
          setWords(currentTarget.value)
          setAt(0)
          setEntered(false)
        }}
        onKeyDown={onKeyDown}
      />
      <div id="hits" role="listbox" aria-label="Found" class="hits">
        {hits.map((hit, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the box above has the keys.
          // biome-ignore lint/a11y/useFocusableInteractive: the box above keeps the focus and says which is active.
          <div
            key={hit.to}
            id={`hit-${index}`}
            role="option"
            aria-selected={index === chosen}
            onClick={() => take(hit)}
          >
            {hit.id !== undefined && <Mark id={hit.id} />}
            {hit.text} <small>{hit.note}</small>
          </div>
        ))}
      </div>
      <p class="state" role="status" hidden={state === ''}>
        {state}
      </p>
    </>
  )
}

const dialog = createRef<HTMLDialogElement>()

export const openSearch = () => dialog.current?.open === false && dialog.current.showModal()

/** The search dialog of the document; ⌘K, Ctrl+K and / open it from any page. */
export function Search() {
  // Each search starts empty. The input always exists, so that it receives text typed directly after the shortcut.
  const [search, setSearch] = useState(0)
  // Before the first paint: the shortcut works as soon as the page is visible.
  useLayoutEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      const isTyping = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement
      const isCommand = (event.metaKey || event.ctrlKey) && event.key.toLowerCase() === 'k'
      if (!isCommand && (event.key !== '/' || isTyping)) return
      event.preventDefault()
      openSearch()
    }
    document.addEventListener('keydown', onKeyDown)
    // The documentation links here.
    if (query.peek().has('search')) {
      go(withQuery({ search: undefined }), { replaces: true })
      openSearch()
    }
    return () => document.removeEventListener('keydown', onKeyDown)
  }, [])
  return (
    <>
      <button type="button" onClick={openSearch} aria-keyshortcuts="Control+K Meta+K">
        Search <kbd>⌘K</kbd>
      </button>
      <dialog class="search" ref={dialog} aria-label="Search" onClose={() => setSearch(search + 1)}>
        <SearchBox key={search} close={() => dialog.current?.close()} />
      </dialog>
    </>
  )
}
