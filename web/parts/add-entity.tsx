import { useEffect, useState } from 'preact/hooks'
import { toFormer, useFound } from './found.ts'

/** Half of the results may be of the other kind. */
const MOST_FOUND = 50
const MOST_HITS = 10

/** A search for tokens or DAOs that can be added to a selection; Enter adds the first result. */
export function AddEntity({ kind, onAdd }: { kind: 'token' | 'dao'; onAdd: (id: string) => void }) {
  const [words, setWords] = useState('')
  const [isEntered, setEntered] = useState(false)
  const { records, isSearching, failure } = useFound(words, MOST_FOUND)
  const hits = records.filter(({ type }) => type === kind).slice(0, MOST_HITS)
  const isNothing = words.trim() !== '' && !isSearching && failure === undefined && hits.length === 0
  const add = (id: string) => {
    setWords('')
    setEntered(false)
    onAdd(id)
  }
  // If the reader presses Enter before the results arrive, the first one is added on arrival.
  useEffect(() => {
    if (!isEntered || isSearching) return
    setEntered(false)
    if (hits[0] !== undefined) add(hits[0]._id)
  }, [isEntered, isSearching])
  return (
    <div class="filters">
      <label>
        Add a {kind === 'token' ? 'token' : 'DAO'}
        <input
          type="search"
          value={words}
          onInput={({ currentTarget }) => {
            setWords(currentTarget.value)
            setEntered(false)
          }}
          onKeyDown={({ key }) => key === 'Enter' && setEntered(true)}
        />
      </label>
      <span role="status">
        {isSearching && 'Searching…'}
        {isNothing && 'No match.'}
        {failure !== undefined && `${failure.title}. ${failure.detail}`}
      </span>
      {hits.map((hit) => (
        <button key={hit._id} type="button" onClick={() => add(hit._id)}>
          {hit.name}
          {toFormer(hit)}
        </button>
      ))}
    </div>
  )
}
