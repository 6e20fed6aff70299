import { type Signal, signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { Answer, Path, Problem, Question } from './interface.ts'

/** What the headers of an answer say of it. */
export interface Facts {
  /** The newest time in it. */
  readonly asOf: Date | undefined
  readonly isStale: boolean
  /** How many records fit, whatever the limit. */
  readonly total: number | undefined
  /** Where the next page of records begins. */
  readonly next: string | undefined
  /** Buckets of the range without an observation. */
  readonly missing: number | undefined
  /** Buckets whose observations are coarser than the interval. */
  readonly coarse: number | undefined
}

export interface Given<T> {
  readonly data: T
  readonly facts: Facts
}

/** Why there is no answer. */
export interface Failure {
  readonly title: string
  readonly detail: string
  /** The interface's word for it, where it was the interface that answered. */
  readonly code: string | undefined
  readonly requestId: string | undefined
}

/** What is known of a question: perhaps an answer, perhaps why the newest one did not come. */
export interface Known<T> {
  readonly given: Given<T> | undefined
  readonly failure: Failure | undefined
  readonly isAsking: boolean
  /** What is shown answers the question before. */
  readonly isBefore: boolean
  readonly again: () => void
}

interface Entry {
  readonly given: Given<unknown> | undefined
  readonly failure: Failure | undefined
  readonly isAsking: boolean
  readonly tag: string | null
  readonly at: number
}

const MOST_KEPT = 80
/** An answer as young as this is not asked again when a page that shows it is opened. */
const YOUNG_MS = 10_000
const REFRESH_MS = 30_000

const entries = new Map<string, Signal<Entry>>()
const watched = new Map<string, number>()

const UNASKED: Entry = { given: undefined, failure: undefined, isAsking: false, tag: null, at: 0 }

function entryOf(url: string): Signal<Entry> {
  const entry = entries.get(url) ?? signal(UNASKED)
  entries.delete(url)
  entries.set(url, entry)
  for (const old of entries.keys()) {
    if (entries.size <= MOST_KEPT) break
    if (!watched.has(old)) entries.delete(old)
  }
  return entry
}

const toNumber = (text: string | null) => (text === null ? undefined : Number(text))

function toFacts(headers: Headers): Facts {
  const asOf = headers.get('x-data-as-of')
  const next = /<([^>]+)>; rel="next"/.exec(headers.get('link') ?? '')?.[1]
  return {
    asOf: asOf === null ? undefined : new Date(asOf),
    isStale: headers.get('x-data-stale') === 'true',
    total: toNumber(headers.get('x-total-count')),
    next: next === undefined ? undefined : (new URLSearchParams(next.replace(/^[^?]*/, '')).get('cursor') ?? undefined),
    missing: toNumber(headers.get('x-series-missing')),
    coarse: toNumber(headers.get('x-series-coarse')),
  }
}

async function toFailure(response: Response): Promise<Failure> {
  const requestId = response.headers.get('x-request-id') ?? undefined
  const text = await response.text()
  if (!response.headers.get('content-type')?.startsWith('application/problem+json'))
    return { title: `The service answered ${response.status}`, detail: text.slice(0, 200), code: undefined, requestId }
  const { title, detail, code }: Problem = JSON.parse(text)
  return { title, detail, code, requestId }
}

/** The browser keeps answers by their entity tags: what has not changed is not sent again. */
async function ask(url: string): Promise<void> {
  const entry = entryOf(url)
  if (entry.peek().isAsking) return
  entry.value = { ...entry.peek(), isAsking: true }
  const at = Date.now()
  try {
    const response = await fetch(url, { headers: { Accept: 'application/json' } })
    const before = entry.peek()
    const tag = response.headers.get('etag')
    if (!response.ok) entry.value = { ...before, failure: await toFailure(response), isAsking: false, at }
    else if (tag !== null && tag === before.tag && before.given !== undefined) {
      const given = { data: before.given.data, facts: toFacts(response.headers) }
      entry.value = { given, failure: undefined, isAsking: false, tag, at }
    } else {
      const given = { data: await response.json(), facts: toFacts(response.headers) }
      entry.value = { given, failure: undefined, isAsking: false, tag, at }
    }
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error)
    const failure = { title: 'The service could not be reached', detail, code: undefined, requestId: undefined }
    entry.value = { ...entry.peek(), failure, isAsking: false, at }
  }
}

setInterval(() => {
  if (document.visibilityState === 'visible') for (const url of watched.keys()) void ask(url)
}, REFRESH_MS)

function watch(url: string): () => void {
  watched.set(url, (watched.get(url) ?? 0) + 1)
  const { at, given } = entryOf(url).peek()
  if (given === undefined || Date.now() - at > YOUNG_MS) void ask(url)
  return () => {
    const left = (watched.get(url) ?? 1) - 1
    if (left === 0) watched.delete(url)
    else watched.set(url, left)
  }
}

const NOTHING = signal(UNASKED)

/**
 * The answer to a question, kept fresh while it is shown. A kept answer is there at once; while another question to the
 * same path is on its way, the answer before stays. Without a question there is none.
 */
export function useAnswer<P extends Path>(question: Question<P> | undefined): Known<Answer<P>> {
  const url = question?.url
  useEffect(() => (url === undefined ? undefined : watch(url)), [url])
  const entry = (url === undefined ? NOTHING : entryOf(url)).value
  const before = useRef<{ path: string; given: Given<unknown> } | undefined>(undefined)
  if (question !== undefined && entry.given !== undefined) before.current = { path: question.path, given: entry.given }
  const kept =
    entry.failure === undefined && before.current?.path === question?.path ? before.current?.given : undefined
  const given = entry.given ?? (url === undefined ? undefined : kept)
  return {
    // The path says which answer it is: what is kept under its URL came from there.
    given: given as Given<Answer<P>> | undefined,
    failure: entry.failure,
    isAsking: entry.isAsking || (entry.given === undefined && entry.failure === undefined),
    isBefore: entry.given === undefined && given !== undefined,
    again: () => url !== undefined && void ask(url),
  }
}

/** The answers to several questions at once, in their order; undefined while one is on its way. */
export function useAnswers<P extends Path>(questions: readonly Question<P>[]) {
  const urls = questions.map(({ url }) => url)
  useEffect(() => {
    const ends = urls.map(watch)
    return () => {
      for (const end of ends) end()
    }
  }, [urls.join(' ')])
  return urls.map((url) => {
    const { given, failure } = entryOf(url).value
    return { given: given as Given<Answer<P>> | undefined, failure, again: () => void ask(url) }
  })
}
