import type { Registry } from '../../../shared/registry/registry.ts'
import type { Database } from '../../../shared/store/store.ts'
import type { AlertEntity } from '../rule-entities.ts'
import type { Rule, What } from '../rules.ts'

/** The content of a message about a subject. Times are Unix milliseconds, `page` and `request` are paths. */
export interface Facts {
  readonly entity: AlertEntity | null
  readonly describe: () => { readonly title: string; readonly text: string }
  readonly observedAt: number | null
  readonly value: number | null
  readonly before: number | null
  readonly threshold: number | null
  readonly unit: string
  readonly page: string | null
  readonly request: string | null
}

/** Whether a condition holds for a subject, and the value that decides it. `observedAt` is Unix milliseconds. */
export interface SubjectResult extends Pick<Facts, 'value' | 'observedAt'> {
  readonly subject: string
  readonly holds: boolean
  /** Called only for a subject that fires: most of thousands do not. */
  readonly toFacts: () => Facts
}

export const toSubjectResult = ({
  subject,
  holds,
  ...facts
}: Facts & { readonly subject: string; readonly holds: boolean }): SubjectResult => ({
  ...{ subject, holds, value: facts.value, observedAt: facts.observedAt },
  toFacts: () => facts,
})

/**
 * The result of a rule.
 * - `state`: whether the condition holds for each subject. A subject that is not listed is unknown, or does not hold if
 *   the list `isComplete`.
 * - `events`: each fires once. `at` is when it happened.
 * - `progress`: fires when the position of a subject has grown.
 */
export type Result =
  | {
      readonly type: 'state'
      readonly isComplete: boolean
      readonly subjects: readonly SubjectResult[]
    }
  | { readonly type: 'events'; readonly events: readonly (Facts & { readonly subject: string; readonly at: number })[] }
  | {
      readonly type: 'progress'
      readonly subjects: readonly (Facts & { readonly subject: string; readonly position: number })[]
    }

export interface ConditionContext {
  readonly db: Database
  readonly registry: Registry
  /** The base URL of the API, for rules about lists. */
  readonly apiUrl: string
  readonly now: number
}

export type RuleOf<K extends What['kind']> = Rule & { readonly what: Extract<What, { kind: K }> }
export type Evaluate<K extends What['kind']> = (
  rules: readonly RuleOf<K>[],
  context: ConditionContext,
) => Promise<ReadonlyMap<string, Result>>

export const NOTHING = {
  entity: null,
  observedAt: null,
  value: null,
  before: null,
  threshold: null,
  unit: '',
  page: null,
}

const USD = new Intl.NumberFormat('en-US', { style: 'currency', currency: 'USD', maximumSignificantDigits: 6 })
export const NUMBER = new Intl.NumberFormat('en-US', { maximumSignificantDigits: 6 })
export const formatValue = (value: number, unit: string): string => (unit === 'USD' ? USD : NUMBER).format(value)

const toPage = ({ type, id }: AlertEntity) => `/${type}s/${id}`

/** The facts of an entity: its page, and the route with its records. */
export const toEntityFacts = (entity: AlertEntity | null, request: string) => ({
  entity,
  page: entity === null ? null : toPage(entity),
  request: toRequest(request, entity === null ? {} : { id: entity.id }),
})

/** A path of the API with a query. */
export const toRequest = (path: string, query: Readonly<Record<string, string>>): string => {
  const text = Object.entries(query).map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
  return text.length === 0 ? path : `${path}?${text.join('&')}`
}

/** Longer lists of keys do not fit in a request; all rows are read then. */
const MOST_KEYS = 1_000

/** SQL condition that a column is one of the keys of `toSelection`. */
export const isSelected = (column: string | number) => `({all: Bool} OR toUInt64(${column}) IN {keys: Array(UInt64)})`

/** The parameters of `isSelected`. */
export const toSelection = (keys: readonly number[]) => {
  const all = keys.length > MOST_KEYS
  return { all, keys: all ? [] : keys }
}
