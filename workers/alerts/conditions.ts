import type { ConditionContext, Evaluate, Result } from './conditions/condition.ts'
import { evaluateDatasets, evaluateProviders } from './conditions/data-quality.ts'
import { evaluateLists } from './conditions/lists.ts'
import { evaluatePowerMoves } from './conditions/power-moves.ts'
import { evaluateProposals } from './conditions/proposals.ts'
import { evaluateLevels, evaluateMoves } from './conditions/series.ts'
import { evaluateTreasuries } from './conditions/treasuries.ts'
import type { Rule, What } from './rules.ts'

const EVALUATE: { readonly [K in What['kind']]: Evaluate<K> } = {
  level: evaluateLevels,
  move: evaluateMoves,
  list: evaluateLists,
  proposal: evaluateProposals,
  powerMove: evaluatePowerMoves,
  treasury: evaluateTreasuries,
  dataset: evaluateDatasets,
  provider: evaluateProviders,
}

/**
 * Evaluates rules of one kind, by their names.
 * @throws DataError `storage`, and for lists those of `readList`.
 */
export function evaluateConditions(
  kind: What['kind'],
  rules: readonly Rule[],
  context: ConditionContext,
): Promise<ReadonlyMap<string, Result>> {
  const evaluate = EVALUATE[kind] as (rules: readonly Rule[], context: ConditionContext) => ReturnType<Evaluate<'list'>>
  return evaluate(rules, context)
}
