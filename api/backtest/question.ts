import { z } from 'zod'
import type { Token } from '../../shared/registry/entities.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import {
  integerParameter,
  MAX_VALUES,
  manyBasketTokens,
  manyReferences,
  nearestWord,
  oneOf,
  time,
} from '../parameters/kinds.ts'
import { Problem } from '../problem/problem.ts'
import { selectMany, tokenKind } from '../route/entities.ts'
import { type Candidate, REBALANCES, type Rule, WEIGHTINGS } from './rule.ts'

const MOST_BPS = 1000
const BASE = 100

const wholeBps = `must be a whole number from 0 to ${MOST_BPS}`
const capRule = 'must be above 0 and at most 1'
const baseRule = 'must be a number above 0 and at most 1000000000'

/** The parameters of a basket (docs/contract.md, section 12). */
export const basketParameters = {
  of: manyBasketTokens.optional(),
  top: integerParameter(MAX_VALUES)
    .optional()
    .meta({
      description: `Instead of \`of\`: the number of the largest tokens by market cap at each rebalance, at most ${MAX_VALUES}. Pegged tokens are left out.`,
      examples: [10],
    }),
  category: manyReferences('category', 'categories', 'dex'),
  chain: manyReferences('chain', 'chains', 'ethereum'),
  weights: oneOf(
    WEIGHTINGS,
    'How a rebalance chooses weights; `fixed` if `of` has shares, else `marketCap`.',
    'equal',
  ).optional(),
  cap: z.coerce
    .number(capRule)
    .gt(0, capRule)
    .max(1, capRule)
    .optional()
    .meta({
      description:
        'Largest weight of a token, as a fraction, with weights by market cap; what is above it is shared among the others.',
      examples: [0.25],
    }),
  rebalance: oneOf(
    REBALANCES,
    'On the first of every month, or of January, April, July and October, or `never`. Default: `never` for `of` with shares, else `monthly`.',
    'monthly',
  ).optional(),
  costBps: z
    .int(wholeBps)
    .min(0, wholeBps)
    .max(MOST_BPS, wholeBps)
    .default(0)
    .meta({
      description: `Cost in basis points of what is bought and of what is sold, at most ${MOST_BPS}.`,
      examples: [30],
    }),
  base: z.coerce
    .number(baseRule)
    .gt(0, baseRule)
    .max(1e9, baseRule)
    .default(BASE)
    .meta({ description: `Value on the first day; ${BASE} when it is not given.`, examples: [BASE] }),
  start: time('First day, at 00:00 UTC; default: a year before `end`.', '2024-01-01').optional(),
  end: time('Last moment, exclusive; default: now.', '2025-01-01').optional(),
}

/** The parsed parameters of a basket. */
export type BasketQuery = z.output<z.ZodObject<typeof basketParameters>>

/** A token of the registry as a candidate, with its key in ClickHouse. */
export interface RegistryCandidate extends Candidate {
  readonly key: number
}

/** A basket: its rule, and the tokens that it may hold in the order of their ids. */
export interface Basket {
  readonly rule: Rule
  readonly candidates: readonly RegistryCandidate[]
}

/**
 * Reads the rule of a basket and finds its tokens, ended ones included.
 * @throws Problem `missing_parameter`, `invalid_parameter`, `not_found` or `ambiguous_name` (docs/contract.md, section 12).
 */
export function toBasket(query: BasketQuery, registry: Registry): Basket {
  const { of, top, category, chain, cap } = query
  if (of === undefined && top === undefined)
    throw new Problem('missing_parameter', 'Give the tokens with of, or their number with top.', {
      param: 'of',
      allowed: ['of', 'top'],
    })
  if (of !== undefined && top !== undefined)
    throw invalid('top', 'of and top exclude each other: of names the tokens, top selects the largest.')
  if (of !== undefined && (category ?? chain) !== undefined)
    throw invalid(category === undefined ? 'chain' : 'category', 'category and chain select tokens only with top.')
  const candidates = of === undefined ? findLargest(query, registry) : findNamed(of, registry)
  const hasShares = candidates.some(({ share }) => share !== undefined)
  const weights = query.weights ?? (hasShares ? 'fixed' : 'marketCap')
  checkWeights(weights, of !== undefined, candidates)
  if (cap !== undefined && weights !== 'marketCap') throw invalid('cap', 'cap works only with weights=marketCap.')
  const most = Math.min(top ?? candidates.length, candidates.length)
  if (cap !== undefined && cap * most < 1)
    throw invalid('cap', `${most} tokens of at most ${cap} each do not sum to 1: the cap must be higher.`)
  const rebalance = query.rebalance ?? (hasShares ? 'never' : 'monthly')
  const { costBps, base } = query
  return { rule: { weights, top, cap, rebalance, costBps, base }, candidates }
}

const invalid = (param: string, detail: string) => new Problem('invalid_parameter', detail, { param })

function checkWeights(weights: Rule['weights'], isNamed: boolean, candidates: readonly Candidate[]): void {
  const withShare = candidates.filter(({ share }) => share !== undefined)
  if (weights !== 'fixed') {
    if (withShare.length > 0)
      throw invalid('weights', `weights=${weights} has no shares: give the tokens without them.`)
    return
  }
  if (!isNamed) throw invalid('weights', 'weights=fixed needs of, with a share for each token.')
  const [first] = candidates.filter(({ share }) => share === undefined)
  if (first !== undefined) throw invalid('of', `${first.symbol} has no share: write ${first.symbol}:0.5, for example.`)
}

/** Every token of the registry, or those of some categories and chains. */
function findLargest(query: BasketQuery, registry: Registry): RegistryCandidate[] {
  const { all, keys } = selectMany(tokenKind, registry, { category: query.category, chain: query.chain })
  const selected = new Set(keys)
  const tokens = registry.tokens.filter(({ key }) => all || selected.has(key))
  if (tokens.length === 0) throw invalid('category', 'No token belongs to these categories and chains.')
  return inOrder(tokens.map((token) => toCandidate(token, registry)))
}

/** The tokens of `of`, each with its share. */
function findNamed(of: readonly string[], registry: Registry): RegistryCandidate[] {
  const found = of.map((text) => {
    const [name = '', share] = text.split(':')
    const candidate = toCandidate(findToken(name, registry), registry)
    return share === undefined ? candidate : { ...candidate, share: toShare(text, share) }
  })
  const repeated = found.find(({ key }, at) => found.findIndex((one) => one.key === key) !== at)
  if (repeated !== undefined) throw invalid('of', `of has ${repeated.symbol} twice.`)
  return inOrder(found)
}

function toShare(text: string, share: string): number {
  const value = Number(share)
  if (value > 0 && Number.isFinite(value)) return value
  throw invalid('of', `The share of "${text}" must be a number above 0.`)
}

/** The token with an id, or the only one with a symbol. */
function findToken(text: string, { tokens, tokenById }: Registry): Token {
  const byId = tokenById.get(text)
  if (byId !== undefined) return byId
  const bySymbol = tokens.filter(({ symbol }) => symbol.toLowerCase() === text)
  const [token, second] = bySymbol
  if (token === undefined) {
    const nearest = nearestWord(
      text,
      tokens.map(({ symbol }) => symbol),
    )
    const hint = nearest === undefined ? '' : ` Did you mean ${nearest}?`
    throw new Problem('not_found', `There is no token with the id or symbol "${text}".${hint}`, { param: 'of' })
  }
  if (second === undefined) return token
  throw new Problem('ambiguous_name', `${bySymbol.length} tokens have the symbol ${token.symbol}: ask by id.`, {
    param: 'of',
    candidates: bySymbol.map(({ id, name }) => ({ id, name })),
  })
}

/** A stablecoin of a chain follows the price of a currency. */
function toCandidate(token: Token, { chains }: Registry): RegistryCandidate {
  const { id, key, symbol, until, contractAddress } = token
  const chain = chains.find(({ slug }) => slug === token.chain)
  const isPegged = chain?.stablecoins.some(({ address }) => address === contractAddress) === true
  return { id, key, symbol, ...(until !== undefined && { until }), ...(isPegged && { kind: 'pegged' as const }) }
}

const inOrder = (candidates: RegistryCandidate[]) => candidates.sort((a, b) => (a.id < b.id ? -1 : 1))
