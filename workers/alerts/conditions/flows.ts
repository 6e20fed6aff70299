import { z } from 'zod'
import { fromFlows, TREASURY_FLOW_VALUES } from '../../../shared/datasets/treasury-flows.ts'
import { DAY_MS } from '../../../shared/intervals.ts'
import { findEntities } from '../rule-entities.ts'
import { type Evaluate, formatValue, NUMBER, type Result, type RuleOf, toEntityFacts } from './condition.ts'

/** Transfers are collected once a day. */
const FLOWS_WITHIN_MS = 3 * DAY_MS

const flowRow = z.object({
  id: z.string(),
  dao: z.number(),
  at: z.int(),
  collectedAt: z.int(),
  kind: z.string(),
  side: z.string(),
  symbol: z.string(),
  quantity: z.number(),
  valueUsd: z.number(),
  counterparty: z.string(),
  label: z.string(),
})

type FlowRow = z.infer<typeof flowRow>

const { _id, kind, symbol, quantity, valueUsd } = TREASURY_FLOW_VALUES
const IS_WITHIN = "recorded_at >= fromUnixTimestamp64Milli({since: Int64}, 'UTC') AND kind != 'spam'"
const SQL = `SELECT ${_id} AS id, f.dao AS dao, toUnixTimestamp64Milli(f.recorded_at) AS at, toUnixTimestamp64Milli(f.collected_at) AS collectedAt,
  ${kind} AS kind, if(f.direction = 'swap', toString(f.leg), toString(f.direction)) AS side, ${symbol} AS symbol,
  assumeNotNull(${quantity}) AS quantity, assumeNotNull(${valueUsd}) AS valueUsd, f.counterparty AS counterparty,
  f.counterparty_label AS label
${fromFlows('IN {daos: Array(UInt64)}', IS_WITHIN)}
WHERE ifNull(${valueUsd} >= {least: Float64}, false)
ORDER BY f.recorded_at`

/** Moves inside the treasury and exchanges of assets fire only for rules about them. */
const USUAL_KINDS: readonly string[] = ['income', 'spending', 'investment', 'mint', 'burn']

function isWanted({ what }: RuleOf<'flow'>, flow: FlowRow): boolean {
  const { overUsd, direction, flowKind, counterparty } = what
  if (flow.valueUsd < overUsd || (direction !== 'any' && flow.side !== direction)) return false
  if (counterparty === 'unknown' && flow.label !== '') return false
  return flowKind === undefined ? USUAL_KINDS.includes(flow.kind) : flow.kind === flowKind
}

/** Fires once for each transfer of a treasury that a rule selects. */
export const evaluateFlows: Evaluate<'flow'> = async (rules, { db, registry, now }) => {
  const entitiesOf = new Map(rules.map((rule) => [rule.name, findEntities(rule, registry) ?? []]))
  const daos = [...new Set([...entitiesOf.values()].flatMap((entities) => entities.map(({ key }) => key)))]
  const least = Math.min(...rules.map(({ what }) => what.overUsd))
  const params = { daos, since: now - FLOWS_WITHIN_MS, least }
  const flows = await db.rows({ name: 'alert-flows', sql: SQL, params, schema: flowRow })
  return new Map(
    rules.map((rule): [string, Result] => {
      const entities = new Map(entitiesOf.get(rule.name)?.map((entity) => [entity.key, entity]))
      const events = flows.flatMap((flow) => {
        const entity = entities.get(flow.dao)
        if (entity === undefined || !isWanted(rule, flow)) return []
        const [verb, towards] = flow.side === 'in' ? ['received', 'from'] : ['paid', 'to']
        return {
          ...toEntityFacts(entity, '/data/daos/treasury/flows'),
          // Transfers that are collected again are no news.
          ...{
            subject: `${entity.id} ${flow.id}`,
            at: Math.min(flow.collectedAt, flow.at + DAY_MS),
            observedAt: flow.at,
          },
          ...{ value: flow.valueUsd, before: null, threshold: rule.what.overUsd, unit: 'USD' },
          describe: () => ({
            title: `${entity.name}: treasury ${verb} ${formatValue(flow.valueUsd, 'USD')} of ${flow.symbol}`,
            text: `${NUMBER.format(flow.quantity)} ${flow.symbol} ${towards} ${flow.label === '' ? `the unknown address ${flow.counterparty}` : `${flow.label} (${flow.counterparty})`}, ${flow.kind}.`,
          }),
        }
      })
      return [rule.name, { type: 'events', events }]
    }),
  )
}
