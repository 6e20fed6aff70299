import { DataError, isTransient, toReason, toSoonest } from '../../shared/errors.ts'
import type { Entity, LeftOut } from '../job/define-job.ts'

/**
 * Result of a run for one entity:
 * - `rows`: `provider` returned rows, or read the entity up to the slot;
 * - `nothing`: `provider` confirmed that it has no data in the range;
 * - `failed`: every provider that could answer failed, at least one with a transient error;
 * - `unserved`: no configured provider has the entity;
 * - `put-off`: the entity is scheduled for a later turn, or was read only in part.
 */
export interface Answer {
  readonly entity: Entity
  readonly state: 'rows' | 'nothing' | 'failed' | 'unserved' | 'put-off'
  readonly provider: string
  /** The first and the last provider's failure reason. Empty if the first provider answered. */
  readonly reason: string
  /**
   * A transient failure, also if a later provider answered. If there are several, the one with the shortest wait: a
   * monthly plan that is exhausted must not delay the retry of the next provider.
   */
  readonly failure: DataError | undefined
  /** Count and reason of elements that were not stored; empty if all were stored. */
  readonly leftOut: string
}

/** One provider's result for the requested entities, by entity key. */
interface Said {
  readonly withRows: ReadonlySet<number>
  readonly read: ReadonlySet<number>
  readonly refused: ReadonlyMap<number, DataError>
  readonly putOff: ReadonlySet<number>
  readonly leftOut?: ReadonlyMap<number, LeftOut>
}

interface Refusal {
  readonly provider: string
  readonly error: DataError
}

/** Collects the providers' results of a run, per entity. */
export interface Answers {
  /** Returns the entities without an answer. */
  open(): readonly Entity[]
  /** Returns whether an earlier provider was tried for the entity and had no answer. */
  isPassedOn(entity: Entity): boolean
  given(asked: readonly Entity[], provider: string, said: Said): void
  failed(asked: readonly Entity[], provider: string, error: DataError): void
  /** Returns one answer per entity. */
  all(): readonly Answer[]
}

export function createAnswers(entities: readonly Entity[], isRange: boolean): Answers {
  const settled = new Map<number, Pick<Answer, 'state' | 'provider' | 'leftOut'>>()
  const refusals = new Map<number, Refusal[]>(entities.map(({ key }) => [key, []]))
  const refuse = (key: number, provider: string, error: DataError) => refusals.get(key)?.push({ provider, error })
  const mayPass = (key: number) => refusals.get(key)?.some(({ error }) => isTransient(error)) ?? false
  return {
    open: () => entities.filter(({ key }) => !settled.has(key)),
    isPassedOn: ({ key }) => (refusals.get(key)?.length ?? 0) > 0,
    given(asked, provider, { withRows, read, refused, putOff, leftOut }) {
      const toRows = (key: number) => ({ state: 'rows', provider, leftOut: toLeftOutText(leftOut?.get(key)) }) as const
      for (const { key } of asked) {
        const refusal = refused.get(key)
        if (refusal !== undefined) refuse(key, provider, refusal)
        else if (read.has(key)) settled.set(key, toRows(key))
        // Rows of a partly read entity are stored, and the entity gets another turn. If an earlier provider may still
        // answer, the entity stays open and is retried before its next turn here.
        else if (putOff.has(key)) {
          if (!mayPass(key)) settled.set(key, { ...toRows(key), state: 'put-off' })
        } else if (withRows.has(key)) settled.set(key, toRows(key))
        else if (isRange && !mayPass(key)) settled.set(key, { ...toRows(key), state: 'nothing' })
        else refuse(key, provider, new DataError('provider_unknown', `${provider}: nothing in its answer`))
      }
    },
    failed(asked, provider, error) {
      for (const { key } of asked) refuse(key, provider, error)
    },
    all: () =>
      entities.map((entity) => {
        const told = refusals.get(entity.key) ?? []
        const failure = toSoonest(told.map(({ error }) => error).filter(isTransient))
        const found = settled.get(entity.key)
        const reason = toReasons(told)
        if (found !== undefined) return { entity, ...found, reason, failure }
        const provider = told[0]?.provider ?? ''
        const state = failure === undefined ? 'unserved' : 'failed'
        return { entity, state, provider, reason: reason === '' ? NO_ID : reason, failure, leftOut: '' }
      }),
  }
}

const NO_ID = 'no provider has an id for it'

const toLeftOutText = (leftOut: LeftOut | undefined) =>
  leftOut === undefined ? '' : `${leftOut.count} left out, ${leftOut.reason}`

/** Returns the first and the last reason, each prefixed with its provider. */
function toReasons(refusals: readonly Refusal[]): string {
  const texts = refusals.map(({ provider, error }) => {
    const text = toReason(error)
    return text.startsWith(provider) ? text : `${provider}: ${text}`
  })
  const [first, last] = [texts[0], texts.at(-1)]
  return [...new Set([first, last])].filter((text) => text !== undefined).join('; ')
}
