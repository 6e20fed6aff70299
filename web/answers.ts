import { type Signal, signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { createConnection } from '../clients/typescript/src/connection.ts'
import type { Answer as Received } from '../clients/typescript/src/facts.ts'
import { ConnectionError, ProblemError } from '../clients/typescript/src/failure.ts'
import type { Answer, Path, Question } from './interface.ts'
import { BASE } from './place.ts'

/** What came for a question, and what its headers say of it. */
export type Given<T> = Received<T>

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
  readonly at: number
}

const MOST_KEPT = 80
/** An answer as young as this is not asked again when a page that shows it is opened. */
const YOUNG_MS = 10_000
const REFRESH_MS = 30_000

const entries = new Map<string, Signal<Entry>>()
const watched = new Map<string, number>()

const UNASKED: Entry = { given: undefined, failure: undefined, isAsking: false, at: 0 }

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

// The browser keeps answers by their entity tags, and what failed is asked again with all that is shown.
const connection = createConnection({ baseUrl: BASE, memory: 0, retries: 0 })

function toFailure(error: unknown): Failure {
  if (error instanceof ProblemError) {
    const { problem, status, code, requestId } = error
    const title = problem?.title ?? `The service answered ${status}`
    return { title, detail: problem?.detail ?? '', code, requestId }
  }
  const cause = error instanceof ConnectionError ? error.cause : error
  const detail = cause instanceof Error ? cause.message : String(cause)
  return { title: 'The service could not be reached', detail, code: undefined, requestId: undefined }
}

/** What is the same stays the same object: nothing is drawn again. */
function toGiven(before: Given<unknown> | undefined, { data, facts }: Given<unknown>): Given<unknown> {
  const isSame = facts.tag !== undefined && facts.tag === before?.facts.tag
  return { data: isSame ? before?.data : data, facts }
}

async function ask(url: string): Promise<void> {
  const entry = entryOf(url)
  if (entry.peek().isAsking) return
  entry.value = { ...entry.peek(), isAsking: true }
  const at = Date.now()
  try {
    const given = toGiven(entry.peek().given, await connection.answer(url))
    entry.value = { given, failure: undefined, isAsking: false, at }
  } catch (error) {
    entry.value = { ...entry.peek(), failure: toFailure(error), isAsking: false, at }
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
