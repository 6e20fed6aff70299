import { useAnswer } from '../answers.ts'
import { type Answer, toQuestion } from '../interface.ts'

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
