import { type Answer, type Query, type Question, toQuestion } from '../interface.ts'
import { go, query, withQuery } from '../place.ts'

/** The parameters of a basket in the API, which the page's address has under the same names. */
export type Rule = Omit<Query<'/data/baskets/historic'>, 'fields' | 'format' | 'bom'>

export type BasketReport = Answer<'/data/baskets/report'>

export const WEIGHTS = { equal: 'Equal', marketCap: 'Market cap', fixed: 'Fixed' } as const
export const REBALANCES = { monthly: 'Monthly', quarterly: 'Quarterly', never: 'Never' } as const

/** How the tokens are chosen: the largest at each rebalance, or named ones. */
export type Choosing = 'largest' | 'named'

/** A named token: its id or symbol, and its part of a basket with fixed weights. */
export interface Part {
  readonly token: string
  readonly share: string | undefined
}

/** The named tokens in the address. */
export const partsOf = (): readonly Part[] =>
  (query.value.get('of') ?? '')
    .split(',')
    .filter((text) => text !== '')
    .map((text) => {
      const [token = '', share] = text.split(':')
      return { token, share }
    })

/** The tokens in the form of the API; with fixed weights a token without a share has 1. */
export const toOf = (parts: readonly Part[], weights: string): string =>
  parts.map(({ token, share }) => (weights === 'fixed' ? `${token}:${share || '1'}` : token)).join(',')

const said = (name: string) => query.value.get(name) ?? ''

export const choosingOf = (): Choosing => (said('by') === 'named' || said('of') !== '' ? 'named' : 'largest')
export const weightsOf = (): string => said('weights') || 'equal'
export const rebalanceOf = (): string => said('rebalance') || 'monthly'

/** The first rule that a reader sees. */
export const USUAL_TOP = '10'

const NAMES = ['cap', 'costBps', 'start', 'end'] as const
const ONLY_LARGEST = ['category', 'chain'] as const

/**
 * The rule in the address; undefined if no token is named yet. Values are sent as they were entered, because the API
 * validates them and describes each fault.
 */
export function ruleOf(): Rule | undefined {
  const isNamed = choosingOf() === 'named'
  if (isNamed && partsOf().length === 0) return undefined
  const names = isNamed ? NAMES : [...NAMES, ...ONLY_LARGEST]
  const entered = Object.fromEntries(names.map((name) => [name, said(name)]).filter(([, value]) => value !== ''))
  const tokens = isNamed ? { of: toOf(partsOf(), weightsOf()) } : { top: said('top') || USUAL_TOP }
  return { ...tokens, weights: weightsOf(), rebalance: rebalanceOf(), ...entered } as unknown as Rule
}

/** Changes the rule. Typing a letter adds no entry to the browser's history. */
export const change = (changes: Readonly<Record<string, string | undefined>>, options = { replaces: true }) =>
  go(withQuery({ ...changes, trades: undefined }), options)

export const toReportQuestion = (rule: Rule) => toQuestion('/data/baskets/report', rule)

/** The request for a table of the report; CSV and the other formats of the answer have the rows of this table. */
export const toTableQuestion = (
  rule: Rule,
  table: NonNullable<Query<'/data/baskets/report'>['table']>,
): Question<'/data/baskets/report'> => toQuestion('/data/baskets/report', { ...rule, table })

/** Describes a rule in a sentence: `Equal weights of the 10 largest tokens, rebalanced monthly, at a cost of 30 basis points.` */
export function describeRule({ rule, universe }: BasketReport, about: { category: string; chain: string }): string {
  const { weights, top, cap, rebalance, costBps } = rule
  const kinds = { equal: 'Equal weights', marketCap: 'Weights by market cap', fixed: 'Fixed weights' } as const
  const capped = cap === null ? '' : ` of at most ${Number((cap * 100).toFixed(6))} %`
  const tokens =
    top === null
      ? `${universe.candidates} named ${universe.candidates === 1 ? 'token' : 'tokens'}`
      : `the ${top} largest tokens${about.category && ` of ${about.category}`}${about.chain && ` on ${about.chain}`}`
  const often = rebalance === 'never' ? 'never rebalanced' : `rebalanced ${rebalance}`
  const cost = costBps === 0 ? 'without costs' : `at a cost of ${costBps} basis points`
  return `${kinds[weights]}${capped}: ${tokens}, ${often}, ${cost}.`
}
