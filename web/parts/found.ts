import { useEffect, useState } from 'preact/hooks'
import { useAnswer } from '../answers.ts'
import { END_OF_TIME } from '../clock.ts'
import { type Answer, toQuestion } from '../interface.ts'
import { toAbsolute } from '../place.ts'

/** The former name by which a record was found, which its own name does not show. */
export function toFormer(found: Answer<'/data/search'>[number]): string {
  if (!('match' in found)) return ''
  if (found.matched === 'formerName') return `, formerly ${found.match.text}`
  return found.matched === 'predecessor' ? `, replaced ${found.match.text}` : ''
}

/**
 * The tokens and DAOs that match a search. Empty while the search is loading, so that the reader cannot open a result
 * of the previous text.
 */
export function useFound(words: string, limit = 10) {
  const q = words.trim().slice(0, 100)
  const { received, failure, isBefore } = useAnswer(
    q === '' ? undefined : toQuestion('/data/search', { q, limit, include: ['match'] }),
  )
  const isSearching = q !== '' && failure === undefined && (received === undefined || isBefore)
  return { records: q === '' || isSearching ? [] : (received?.data ?? []), failure, isSearching }
}

/** A shorter text is in most titles. */
const LEAST_LETTERS = 3
const MOST_PROPOSALS = 5
const MOST_OPERATIONS = 8

/** A pause in typing: titles are compared in the database, and not for each letter. */
const PAUSE_MS = 250

/** A text that has not changed for a while. */
function useSettled(text: string): string {
  const [settled, setSettled] = useState('')
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), PAUSE_MS)
    return () => clearTimeout(timer)
  }, [text])
  return settled
}

/** The newest proposals with a text in their title; empty while they are loading. */
export function useFoundProposals(words: string) {
  const wanted = words.trim().slice(0, 100)
  const title = useSettled(wanted)
  const isAsked = title === wanted && title.length >= LEAST_LETTERS
  const fields = ['_id' as const, 'dao' as const, 'title' as const, 'flagged' as const]
  const { received, failure, isBefore } = useAnswer(
    isAsked
      ? toQuestion('/data/daos/governance/proposals', {
          ...{ title, endsBefore: END_OF_TIME, source: 'all', sort: '-createdAt', limit: MOST_PROPOSALS, fields },
        })
      : undefined,
  )
  const isLoading = isAsked && failure === undefined && (received === undefined || isBefore)
  const isSearching = isLoading || (wanted.length >= LEAST_LETTERS && title !== wanted)
  return { records: !isAsked || isSearching ? [] : (received?.data ?? []), isSearching }
}

interface Operation {
  readonly operationId: string
  readonly path: string
  readonly summary: string
}

let operations: Promise<readonly Operation[]> | undefined

async function loadOperations(): Promise<readonly Operation[]> {
  const response = await fetch(toAbsolute('pages/operations.json'))
  if (!response.ok) throw new Error(`the list of operations answers ${response.status}`)
  return response.json()
}

/** The operations of the API with these words in their name, path or summary. Their list is loaded by the first search. */
export function useFoundOperations(words: string): readonly Operation[] {
  const [all, setAll] = useState<readonly Operation[]>([])
  const isAsked = words.trim().length >= LEAST_LETTERS
  useEffect(() => {
    if (!isAsked) return
    operations ??= loadOperations()
    operations.then(setAll, (error) => {
      operations = undefined
      console.warn('operations are not found by this search', error)
    })
  }, [isAsked])
  const wanted = words.trim().toLowerCase()
  const isFound = (operation: Operation) => Object.values(operation).some((text) => text.toLowerCase().includes(wanted))
  return isAsked ? all.filter(isFound).slice(0, MOST_OPERATIONS) : []
}
