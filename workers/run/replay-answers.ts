import { DataError } from '../../shared/errors.ts'
import type { Database } from '../../shared/store/store.ts'
import {
  type AnswerStamp,
  type RequestKey,
  readBodies,
  readLastAnswer,
  type StoredBody,
  type StoredRun,
} from '../../shared/store/store.ts'
import type { StoredAnswers } from '../http/client.ts'

const toKey = ({ provider, method, host, path, query, sent }: RequestKey) =>
  [provider, method, host, path, query, sent].join('\0')

const toName = ({ provider, method, host, path, query }: RequestKey) =>
  `${provider}: ${method} ${host}${path}${query === '' ? '' : `?${query}`}`

const isSuccess = (status: number) => status >= 200 && status < 300

/** Where the answers of a run are stored. */
export interface AnswerSource {
  readBodies(hashes: readonly string[]): Promise<ReadonlyMap<string, StoredBody>>
  /** Returns the newest answer to a request that the run did not send: a process reuses some answers in several runs. */
  readLast(request: RequestKey): Promise<AnswerStamp | undefined>
}

/** The answers in the database. */
export const toStoredSource = (db: Database, dataset: string, { collectedAt }: StoredRun): AnswerSource => ({
  readBodies: (hashes) => readBodies(db, hashes),
  readLast: (request) => readLastAnswer(db, request, { dataset, before: collectedAt }),
})

/** The elements of the path and the query of a request, and the names of its parameters. */
function toElements({ path, query }: Pick<RequestKey, 'path' | 'query'>) {
  const split = (text: string) => text.replaceAll(/%2C/gi, ',').split(/[/?&=,]/)
  const names = query.split('&').map((pair) => pair.split('=')[0])
  return { elements: new Set(split(`${path}?${query}`)), form: `${path.split('/').length} ${names.join(' ')}` }
}

/** An answer of the run to the same request for a longer list of entities. */
function findWider(answers: StoredRun['answers'], request: RequestKey): AnswerStamp | undefined {
  const { elements, form } = toElements(request)
  return answers.find((one) => {
    const { provider, method, host, sent, status } = one
    if (provider !== request.provider || method !== request.method || host !== request.host) return false
    if (sent !== '' || request.sent !== '' || !isSuccess(status)) return false
    const wider = toElements(one)
    return (
      wider.form === form &&
      wider.elements.size > elements.size &&
      [...elements].every((element) => wider.elements.has(element))
    )
  })
}

/** Answers requests with the bodies that a run received, in the order of its attempts. */
export async function openStoredAnswers(
  source: AnswerSource,
  run: StoredRun,
): Promise<StoredAnswers & { findMissing(): DataError | undefined }> {
  const bodies = new Map(await source.readBodies([...new Set(run.answers.map(({ hash }) => hash))]))
  const queues = new Map<string, AnswerStamp[]>()
  for (const answer of run.answers) {
    const key = toKey(answer)
    queues.set(key, [...(queues.get(key) ?? []), answer])
  }
  let missing: DataError | undefined
  const fail = (request: RequestKey, reason: string): never => {
    missing ??= new DataError(
      'payload',
      `run of ${new Date(run.collectedAt).toISOString()}: ${toName(request)}: ${reason}`,
    )
    throw missing
  }
  const findStamp = async (request: RequestKey): Promise<AnswerStamp> => {
    const queue = queues.get(toKey(request)) ?? []
    const next = queue.length > 1 ? queue.shift() : queue[0]
    if (next !== undefined) return next
    const wider = findWider(run.answers, request)
    if (wider !== undefined) return wider
    const last = await source.readLast(request)
    return last ?? fail(request, 'no answer is stored. The current code sends other requests than the run did')
  }
  return {
    async take(request) {
      const { hash, status, contentType, code, reason } = await findStamp(request)
      const shown = { status, contentType: contentType === '' ? null : contentType, code, reason }
      if (status === 0) return { ...shown, body: '' }
      if (!bodies.has(hash)) for (const [key, body] of await source.readBodies([hash])) bodies.set(key, body)
      const body = bodies.get(hash) ?? fail(request, `the body ${hash} is not stored any more`)
      if (body.omitted !== '' && isSuccess(status)) fail(request, `the body is not stored: ${body.omitted}`)
      return { ...shown, body: body.body }
    },
    findMissing: () => missing,
  }
}
