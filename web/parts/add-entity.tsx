import { useEffect, useState } from 'preact/hooks'
import { toFormer, useFound } from './found.ts'

/** Half of the results may be of the other kind. */
const MOST_FOUND = 50
const MOST_HITS = 10

const toNames = (text: string) =>
  text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')

/**
 * A search for tokens or DAOs that can be added to a selection. Enter adds the first result, and a comma does the same
 * before the next name.
 */
export function AddEntity({ kind, onAdd }: { kind: 'token' | 'dao'; onAdd: (id: string) => void }) {
  const [words, setWords] = useState('')
  const [entered, setEntered] = useState<readonly string[]>([])
  const [unmatched, setUnmatched] = useState<readonly string[]>([])
  /** After Enter, the next letter removes the message about earlier names. */
  const [isEnd, setEnd] = useState(false)
  const [name] = entered
  // One name after the other: each is added to the selection that the name before it has changed.
  const { records, isSearching, failure } = useFound(name ?? words, MOST_FOUND)
  const hits = records.filter(({ type }) => type === kind).slice(0, MOST_HITS)
  const isTyped = name === undefined && words.trim() !== ''
  const isNothing = isTyped && !isSearching && failure === undefined && hits.length === 0
  const type = (text: string) => {
    const end = text.lastIndexOf(',') + 1
    setWords(text.slice(end).trimStart())
    setEntered((before) => [...before, ...toNames(text.slice(0, end))])
  }
  const add = (id: string) => {
    setWords('')
    onAdd(id)
  }
  useEffect(() => {
    if (name === undefined || isSearching) return
    setEntered((before) => (failure === undefined ? before.slice(1) : []))
    if (failure !== undefined) setWords((text) => [...entered, ...toNames(text)].join(', '))
    else if (hits[0] === undefined) setUnmatched((before) => [...before, name])
    else onAdd(hits[0]._id)
  }, [name, entered.length, isSearching])
  return (
    <div class="filters">
      <label>
        Add a {kind === 'token' ? 'token' : 'DAO'}
        <input
          type="search"
          value={words}
          onInput={({ currentTarget }) => {
            if (isEnd) setUnmatched([])
            setEnd(false)
            type(currentTarget.value)
          }}
          onKeyDown={({ key }) => {
            if (key !== 'Enter') return
            setEnd(true)
            type(`${words},`)
          }}
        />
      </label>
      <span role="status">
        {isSearching && 'Searching…'}
        {isNothing && 'No match.'}
        {unmatched.length > 0 && ` No match for ${unmatched.join(', ')}.`}
        {failure !== undefined && `${failure.title}. ${failure.detail}`}
      </span>
      {name === undefined &&
        hits.map((hit) => (
          <button key={hit._id} type="button" onClick={() => add(hit._id)}>
            {hit.name}
            {toFormer(hit)}
          </button>
        ))}
    </div>
  )
}
