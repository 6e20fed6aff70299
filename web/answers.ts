import { type Signal, signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { createConnection } from '../clients/typescript/src/connection.ts'
import type { Answer as Received } from '../clients/typescript/src/facts.ts'
import { ConnectionError, ProblemError } from '../clients/typescript/src/failure.ts'
import type { Answer, Path, Question } from './interface.ts'
import { BASE } from './place.ts'

/** The data of an answer, and the metadata from its headers. */
export type ReceivedAnswer<T> = Received<T>

/** Why there is no answer. */
export interface Failure {
  readonly title: string
  readonly detail: string
  /** The API's error code, if the API itself answered. */
  readonly code: string | undefined
  /** The parameter that the API rejects. */
  readonly param?: string | undefined
  readonly requestId: string | undefined
  /** Earliest time of a retry, in Unix milliseconds; undefined for permanent errors. */
  readonly retryAt: number | undefined
}

/** State of a query: its answer, if there is one, and the error of the newest request, if it failed. */
export interface AnswerState<T> {
  readonly received: ReceivedAnswer<T> | undefined
  readonly failure: Failure | undefined
  readonly isAsking: boolean
  /** The shown answer belongs to the previous query. */
  readonly isBefore: boolean
  readonly retry: () => void
}

interface Entry {
  readonly received: ReceivedAnswer<unknown> | undefined
  readonly failure: Failure | undefined
  readonly isAsking: boolean
  readonly at: number
}

const MAX_CACHED = 80
/** An answer younger than this is not requested again when a page that shows it is opened. */
export const YOUNG_MS = 10_000

/** A query with a cached answer. */
interface CachedQuestion {
  readonly path: Path
  readonly about: string
  /** Number of components that show the answer. */
  count: number
  /** The data changed during the request: one more request follows. */
  isOutdated: boolean
}

const entries = new Map<string, Signal<Entry>>()
const cache = new Map<string, CachedQuestion>()

const UNASKED: Entry = { received: undefined, failure: undefined, isAsking: false, at: 0 }

function entryOf(url: string): Signal<Entry> {
  const entry = entries.get(url) ?? signal(UNASKED)
  entries.delete(url)
  entries.set(url, entry)
  for (const old of entries.keys()) {
    if (entries.size <= MAX_CACHED) break
    if ((cache.get(old)?.count ?? 0) > 0) continue
    entries.delete(old)
    cache.delete(old)
  }
  return entry
}

/**
 * When the start of a range has advanced, drops the answers for its earlier starts: a year of points is about ten
 * megabytes.
 */
function forgetEarlier(url: string): void {
  const about = cache.get(url)?.about
  for (const [key, one] of cache) {
    if (key === url || one.about !== about || one.count > 0) continue
    entries.delete(key)
    cache.delete(key)
  }
}

/** A year of 5-minute points, twice. */
const MOST_CHARACTERS = 50_000_000

/**
 * Answers are always revalidated with the service, because the service may change the data before an answer's maximum
 * age ends. The browser's cache is disabled: after a 304 it would not remove the header of an answer that is no longer
 * stale. Failed requests are retried soon, see `renew`.
 */
const connection = createConnection({
  ...{ baseUrl: BASE, memory: MOST_CHARACTERS, retries: 0 },
  fetch: (input, init) => fetch(input, { ...init, cache: 'no-store' }),
})

function toFailure(error: unknown): Failure {
  const now = Date.now()
  if (error instanceof ProblemError) {
    const { problem, status, code, requestId, retryAfter = 0 } = error
    const title = problem?.title ?? `The service answered ${status}`
    const retryAt = status >= 500 || status === 429 ? now + retryAfter * 1000 : undefined
    return { title, detail: problem?.detail ?? '', code, param: problem?.param, requestId, retryAt }
  }
  const cause = error instanceof ConnectionError ? error.cause : error
  const detail = cause instanceof Error ? cause.message : String(cause)
  return { title: 'The service could not be reached', detail, code: undefined, requestId: undefined, retryAt: now }
}

/** Unchanged data keeps its object identity, so that nothing is rendered again. */
function mergeReceived(
  before: ReceivedAnswer<unknown> | undefined,
  { data, facts }: ReceivedAnswer<unknown>,
): ReceivedAnswer<unknown> {
  const isSame = facts.tag !== undefined && facts.tag === before?.facts.tag
  return { data: isSame ? before?.data : data, facts }
}

async function fetchAnswer(url: string): Promise<void> {
  const entry = entryOf(url)
  if (entry.peek().isAsking) return
  entry.value = { ...entry.peek(), isAsking: true }
  const at = Date.now()
  try {
    const received = mergeReceived(entry.peek().received, await connection.answer(url))
    entry.value = { received, failure: undefined, isAsking: false, at }
    forgetEarlier(url)
  } catch (error) {
    entry.value = { ...entry.peek(), failure: toFailure(error), isAsking: false, at }
  }
  const one = cache.get(url)
  if (one?.isOutdated !== true) return
  one.isOutdated = false
  refetch(url, one)
}

/** Requests a shown answer immediately, and a hidden one when it is shown again. */
function refetch(url: string, { count }: CachedQuestion): void {
  const entry = entries.get(url)
  if (count > 0) void fetchAnswer(url)
  else if (entry !== undefined) entry.value = { ...entry.peek(), at: 0 }
}

/**
 * Requests outdated answers again. The callback decides by path, by the time of the last request in Unix milliseconds,
 * and by whether it failed and may be retried now.
 */
export function renew(isOutdated: (path: Path, requestedAt: number, hasFailed: boolean) => boolean): void {
  for (const [url, one] of cache) {
    const { isAsking, at, failure } = entries.get(url)?.peek() ?? UNASKED
    const hasFailed = failure?.retryAt !== undefined && failure.retryAt <= Date.now()
    if (!isOutdated(one.path, at, hasFailed)) continue
    if (isAsking) one.isOutdated = true
    else refetch(url, one)
  }
}

function watch({ path, url, about }: Question): () => void {
  const { at, received } = entryOf(url).peek()
  const one = cache.get(url) ?? { path, about, count: 0, isOutdated: false }
  one.count += 1
  cache.set(url, one)
  if (received === undefined || Date.now() - at > YOUNG_MS) void fetchAnswer(url)
  return () => {
    one.count -= 1
  }
}

const NOTHING = signal(UNASKED)

/**
 * The answer to a query, refreshed while it is shown. A cached answer is available immediately. While another query
 * with the same path is loading, the previous answer is returned. The previous answer is also returned if the start of
 * a range has advanced and its request fails. Without a query there is no answer.
 */
export function useAnswer<P extends Path>(question: Question<P> | undefined): AnswerState<Answer<P>> {
  const url = question?.url
  useEffect(() => (question === undefined ? undefined : watch(question)), [url])
  const entry = (url === undefined ? NOTHING : entryOf(url)).value
  const before = useRef<{ question: Question; received: ReceivedAnswer<unknown> } | undefined>(undefined)
  if (question !== undefined && entry.received !== undefined) before.current = { question, received: entry.received }
  const received = entry.received ?? (question && before.current && findPrevious(question, entry, before.current))
  return {
    // The URL determines the path, and thereby the type of the cached answer.
    received: received as ReceivedAnswer<Answer<P>> | undefined,
    failure: entry.failure,
    isAsking: entry.isAsking || (entry.received === undefined && entry.failure === undefined),
    isBefore: entry.received === undefined && received !== undefined,
    retry: () => url !== undefined && void fetchAnswer(url),
  }
}

/**
 * The previous answer. If the query failed, only an answer that differs in the start of its range is returned, because
 * the rest matches.
 */
function findPrevious<T>(
  question: Question,
  { failure }: Entry,
  before: { question: Question; received: T },
): T | undefined {
  const isSame =
    failure === undefined ? before.question.path === question.path : before.question.about === question.about
  return isSame ? before.received : undefined
}

/** The answers to several queries, in order; an answer that is loading is undefined. */
export function useAnswers<P extends Path>(questions: readonly Question<P>[]) {
  const urls = questions.map(({ url }) => url)
  useEffect(() => {
    const ends = questions.map(watch)
    return () => {
      for (const end of ends) end()
    }
  }, [urls.join(' ')])
  return urls.map((url) => {
    const { received, failure } = entryOf(url).value
    return { received: received as ReceivedAnswer<Answer<P>> | undefined, failure, retry: () => void fetchAnswer(url) }
  })
}
