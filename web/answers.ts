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
  /** From when on it may be answered, in Unix milliseconds; not known of what is refused for what it is. */
  readonly retryAt: number | undefined
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
export const YOUNG_MS = 10_000

/** A question whose answer is kept. */
interface Asked {
  readonly path: Path
  readonly about: string
  /** In how many places its answer is shown. */
  count: number
  /** Something changed while it was being asked: it is asked once more. */
  isOutdated: boolean
}

const entries = new Map<string, Signal<Entry>>()
const asked = new Map<string, Asked>()

const UNASKED: Entry = { given: undefined, failure: undefined, isAsking: false, at: 0 }

function entryOf(url: string): Signal<Entry> {
  const entry = entries.get(url) ?? signal(UNASKED)
  entries.delete(url)
  entries.set(url, entry)
  for (const old of entries.keys()) {
    if (entries.size <= MOST_KEPT) break
    if ((asked.get(old)?.count ?? 0) > 0) continue
    entries.delete(old)
    asked.delete(old)
  }
  return entry
}

/** Of a range that has moved on nobody asks for the answers before: a year of points is some ten megabytes. */
function forgetEarlier(url: string): void {
  const about = asked.get(url)?.about
  for (const [other, one] of asked) {
    if (other === url || one.about !== about || one.count > 0) continue
    entries.delete(other)
    asked.delete(other)
  }
}

/** A year of 5-minute points, and as much again. */
const MOST_CHARACTERS = 50_000_000

/**
 * What has not changed is not sent again. The service is asked each time, because an answer may be kept longer than it is the
 * newest. The browser keeps nothing: it would go on saying that an answer is stale which no longer is, as it takes no header
 * away from what it has. What failed is asked again soon, see `renew`.
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
    return { title, detail: problem?.detail ?? '', code, requestId, retryAt }
  }
  const cause = error instanceof ConnectionError ? error.cause : error
  const detail = cause instanceof Error ? cause.message : String(cause)
  return { title: 'The service could not be reached', detail, code: undefined, requestId: undefined, retryAt: now }
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
    forgetEarlier(url)
  } catch (error) {
    entry.value = { ...entry.peek(), failure: toFailure(error), isAsking: false, at }
  }
  const one = asked.get(url)
  if (one?.isOutdated !== true) return
  one.isOutdated = false
  askAgain(url, one)
}

/** What is shown is asked for at once, what is not when it is shown again. */
function askAgain(url: string, { count }: Asked): void {
  const entry = entries.get(url)
  if (count > 0) void ask(url)
  else if (entry !== undefined) entry.value = { ...entry.peek(), at: 0 }
}

/**
 * Asks again for what is outdated, by its path, by when it was asked, in Unix milliseconds, and by whether it failed and may
 * be answered by now.
 */
export function renew(isOutdated: (path: Path, askedAt: number, hasFailed: boolean) => boolean): void {
  for (const [url, one] of asked) {
    const { isAsking, at, failure } = entries.get(url)?.peek() ?? UNASKED
    const hasFailed = failure?.retryAt !== undefined && failure.retryAt <= Date.now()
    if (!isOutdated(one.path, at, hasFailed)) continue
    if (isAsking) one.isOutdated = true
    else askAgain(url, one)
  }
}

function watch({ path, url, about }: Question): () => void {
  const { at, given } = entryOf(url).peek()
  const one = asked.get(url) ?? { path, about, count: 0, isOutdated: false }
  one.count += 1
  asked.set(url, one)
  if (given === undefined || Date.now() - at > YOUNG_MS) void ask(url)
  return () => {
    one.count -= 1
  }
}

const NOTHING = signal(UNASKED)

/**
 * The answer to a question, kept fresh while it is shown. A kept answer is there at once; while another question to the
 * same path is on its way, the answer before stays, and so it does where a range has moved on and cannot be asked
 * for. Without a question there is none.
 */
export function useAnswer<P extends Path>(question: Question<P> | undefined): Known<Answer<P>> {
  const url = question?.url
  useEffect(() => (question === undefined ? undefined : watch(question)), [url])
  const entry = (url === undefined ? NOTHING : entryOf(url)).value
  const before = useRef<{ question: Question; given: Given<unknown> } | undefined>(undefined)
  if (question !== undefined && entry.given !== undefined) before.current = { question, given: entry.given }
  const given = entry.given ?? (question && before.current && toKept(question, entry, before.current))
  return {
    // The path says which answer it is: what is kept under its URL came from there.
    given: given as Given<Answer<P>> | undefined,
    failure: entry.failure,
    isAsking: entry.isAsking || (entry.given === undefined && entry.failure === undefined),
    isBefore: entry.given === undefined && given !== undefined,
    again: () => url !== undefined && void ask(url),
  }
}

/** The answer before: of a question that fails only where its range has moved on, as the rest is what was asked for. */
function toKept<T>(question: Question, { failure }: Entry, before: { question: Question; given: T }): T | undefined {
  const isSame =
    failure === undefined ? before.question.path === question.path : before.question.about === question.about
  return isSame ? before.given : undefined
}

/** The answers to several questions at once, in their order; undefined while one is on its way. */
export function useAnswers<P extends Path>(questions: readonly Question<P>[]) {
  const urls = questions.map(({ url }) => url)
  useEffect(() => {
    const ends = questions.map(watch)
    return () => {
      for (const end of ends) end()
    }
  }, [urls.join(' ')])
  return urls.map((url) => {
    const { given, failure } = entryOf(url).value
    return { given: given as Given<Answer<P>> | undefined, failure, again: () => void ask(url) }
  })
}
