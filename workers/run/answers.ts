import { DataError, isTransient, toReason, toSoonest } from '../../shared/errors.ts'
import type { Entity, LeftOut } from '../job/define-job.ts'

/**
 * What a run came to for one entity:
 * - `rows`: it has rows, or was read up to the slot, by `provider`;
 * - `nothing`: `provider` has nothing of it in the range, for sure;
 * - `failed`: who could have an answer gave none, for a reason that may pass;
 * - `unserved`: no provider that is set up has it;
 * - `put-off`: it is not its turn, or it was read in part.
 */
export interface Answer {
  readonly entity: Entity
  readonly state: 'rows' | 'nothing' | 'failed' | 'unserved' | 'put-off'
  readonly provider: string
  /** The first provider's reason and the last one's, when nobody or only a later one answered. */
  readonly reason: string
  /**
   * What failed in a way that may pass, also when a later provider answered. Of several it is the one that passes soonest:
   * a plan that is used up for a month delays no try of the provider after it.
   */
  readonly failure: DataError | undefined
  /** What of the answer is not stored, and why; empty if all of it is. */
  readonly leftOut: string
}

/** What one provider's answer says of the entities that it was asked about, by their keys. */
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

/** The answers of a run as providers give them, one entity at a time. */
export interface Answers {
  /** The entities that have no answer yet. */
  open(): readonly Entity[]
  /** Whether a provider was asked about the entity, and had no answer. */
  isPassedOn(entity: Entity): boolean
  given(asked: readonly Entity[], provider: string, said: Said): void
  failed(asked: readonly Entity[], provider: string, error: DataError): void
  /** One for each entity. */
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
        // The rows of one that was read in part are stored, but it has its turn again. Of one that an earlier provider may
        // still answer it stays open: it is tried again before its next turn here.
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

/** The first reason and the last one, each naming its provider. */
function toReasons(refusals: readonly Refusal[]): string {
  const texts = refusals.map(({ provider, error }) => {
    const text = toReason(error)
    return text.startsWith(provider) ? text : `${provider}: ${text}`
  })
  const [first, last] = [texts[0], texts.at(-1)]
  return [...new Set([first, last])].filter((text) => text !== undefined).join('; ')
}
