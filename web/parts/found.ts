import { useAnswer } from '../answers.ts'
import { toQuestion } from '../interface.ts'

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
