import { z } from 'zod'
import { indexPoints } from '../../../shared/datasets/index-points.ts'
import { tokenPrices } from '../../../shared/datasets/token-prices.ts'
import { idValue, numberOrNull, timeValue, uint32 } from '../../../shared/record-values.ts'
import { type Computed, computeBasket, countValues } from '../../backtest/answer.ts'
import type { Trades } from '../../backtest/back-test.ts'
import { readIndexDays } from '../../backtest/market.ts'
import { basketParameters } from '../../backtest/question.ts'
import { EXCLUSIONS, EXITS, REBALANCES, WEIGHTINGS } from '../../backtest/rule.ts'
import { PERIODS_PER_YEAR, toStatistics } from '../../backtest/statistics.ts'
import { sum } from '../../backtest/sum.ts'
import { basketTableRow, membersOf, tableParameter, toTableRows } from '../../backtest/tables.ts'
import { answerComputed, EVERYTHING } from '../../lists/lists.ts'
import { defineRoute } from '../../route/define-route.ts'
import { nextGridTime } from '../../series/series.ts'

const symbol = z.string().describe('Symbol of the token.')
const token = idValue.describe('Id of the token.')
const timeOrNull = timeValue.nullable()

const rule = z
  .strictObject({
    weights: z.enum(WEIGHTINGS).describe('How weights are chosen.'),
    top: uint32.nullable().describe('Number of the largest candidates that are held; null for all of them.'),
    cap: numberOrNull.describe('Largest weight of a token, as a fraction; null without one.'),
    rebalance: z.enum(REBALANCES).describe('When the basket is rebalanced.'),
    costBps: uint32.describe('Cost of what is bought and of what is sold, in basis points.'),
    base: z.number().describe('Value on the first day.'),
  })
  .describe('The rule of the basket, with its defaults.')

const rebalance = z
  .strictObject({
    scheduledAt: timeValue.describe('The day on which the rule asks for it.'),
    executedAt: timeValue.describe('The first day from then on with a price of every held token.'),
    decidedWith: timeValue.describe('The day whose prices and market caps decided: the one before `scheduledAt`.'),
    members: z
      .array(
        z.strictObject({
          token,
          symbol,
          weight: z.number().describe('Part of the basket, as a fraction.'),
          units: z.number().describe('Held quantity of the token.'),
          price: z.number().describe('Price of the trade, in US dollars.'),
        }),
      )
      .describe('What is held from then on.'),
    entered: z.array(idValue).describe('Tokens that were not held before.'),
    exited: z.array(idValue).describe('Tokens that are no longer held.'),
    excluded: z
      .array(z.strictObject({ token, symbol, reason: z.enum(EXCLUSIONS).describe('Why it is not held.') }))
      .describe('Candidates that are not held.'),
    turnover: z.number().describe('Traded part of the basket, one way, as a fraction; 0 for the first allocation.'),
    cost: z.number().describe('Cost, in the unit of `base`.'),
    nav: z.number().describe('Value after the cost.'),
  })
  .meta({ id: 'BasketRebalance', description: 'The trades of one day.' })

const report = z
  .strictObject({
    rule,
    start: timeValue.describe('Day of the first allocation.'),
    end: timeValue.describe('The last day.'),
    nav: numberOrNull.describe('The last known value; null if none is known.'),
    totalReturn: numberOrNull.describe('Change from `base` to `nav`, as a fraction; null without `nav`.'),
    maxDrawdown: z
      .strictObject({
        value: z.number().describe('The deepest fall from an earlier highest value, as a fraction (0 or less).'),
        peakAt: timeValue.describe('Day of the highest value before it.'),
        troughAt: timeValue.describe('Day of the lowest value.'),
        recoveredAt: timeOrNull.describe('First day with at least the value of the peak again; null before that.'),
      })
      .nullable()
      .describe('Null without a known value.'),
    volatility: numberOrNull.describe(
      'Sample standard deviation of the daily returns times the square root of 365, as a fraction; null for fewer than two returns.',
    ),
    sharpe: numberOrNull.describe(
      'Mean of the daily returns divided by their sample standard deviation, times the square root of 365; without a risk-free rate. Null if the returns do not vary.',
    ),
    trackingError: numberOrNull.describe(
      'Sample standard deviation of the daily differences to the returns of the Index, times the square root of 365; null for fewer than two.',
    ),
    correlation: numberOrNull.describe(
      "Pearson's correlation of the daily returns with those of the Index; null if one side does not vary.",
    ),
    returns: uint32.describe('Number of daily returns; one across an unknown day is left out.'),
    returnsWithIndex: uint32.describe('Number of days on which the Index has a return, too.'),
    periodsPerYear: uint32.describe('Days in a year, for the yearly figures.'),
    turnover: z.number().describe('Sum of the turnover of all rebalances.'),
    cost: z.number().describe('Sum of all costs, in the unit of `base`.'),
    rebalances: z.array(rebalance).describe('Oldest first; the first one is the first allocation.'),
    exits: z
      .array(
        z.strictObject({
          token,
          symbol,
          at: timeValue.describe('The day on which it was paid out in cash.'),
          reason: z.enum(EXITS).describe('It ended, or had no price for over seven days.'),
          price: z.number().describe('The last known price, in US dollars.'),
        }),
      )
      .describe('Tokens that left the basket between two rebalances.'),
    missingPriceDays: z
      .array(
        z.strictObject({ day: timeValue.describe('The day.'), tokens: z.array(idValue).describe('Without a price.') }),
      )
      .describe('Days on which a held token has no price: the basket then has no value.'),
    universe: z
      .strictObject({
        candidates: uint32.describe('Number of tokens that the basket may hold.'),
        ended: uint32.describe('How many of them ended by `end`.'),
      })
      .describe('Ended tokens are candidates until their end.'),
  })
  .meta({ id: 'BasketReport', description: 'A back-test of a basket: statistics, and every trade.' })

export const basketReportRoute = defineRoute({
  operation: 'getBasketReport',
  path: '/data/baskets/report',
  tag: 'Baskets',
  summary: 'The trades and statistics of an own basket of tokens',
  description:
    'The back-test of `/data/baskets/historic` with its holdings at each rebalance, what entered and left, costs, and statistics. Weights, turnover, returns and drawdown are fractions (0.015 is 1.5 %). Nothing that was unknown on the day before a rebalance decides what it holds. With another format than JSON, the answer is one table of the report: see `table`.',
  query: { ...basketParameters, table: tableParameter },
  record: basketTableRow,
  response: report,
  datasets: [tokenPrices, indexPoints],
  estimateValues: ({ registry, query, now }) => countValues(query, registry, now()),
  handle: async (call) => {
    const computed = await computeBasket(call, call.query)
    const { query, representation } = call
    const expiry = computed.isOpen ? { expiresAt: nextGridTime(call.now()) } : {}
    if (representation.format !== 'json') {
      const fields = representation.hasAllFields ? membersOf(query.table) : representation.fields
      const rows = { name: 'basket-table', records: toTableRows(computed, query.table), asOf: computed.asOf, ...expiry }
      return answerComputed({ ...call, representation: { ...representation, fields, hasAllFields: false } }, rows, {
        ...{ selection: EVERYTHING, sort: [], filters: [] },
      })
    }
    const index = await readIndexDays(
      call.db,
      call.registry.index,
      computed.test.days.map(({ at }) => at),
    )
    return {
      body: Buffer.from(JSON.stringify(toReport(computed, index))),
      asOf: computed.asOf,
      ...expiry,
    }
  },
})

const toTime = (ms: number | undefined) => new Date(ms ?? 0).toISOString()

function toReport(
  { rule: own, candidates, test }: Computed,
  index: readonly (number | null)[],
): z.infer<typeof report> {
  const { days, rebalances, exits, missingPriceDays } = test
  const idOf = (place: number) => candidates[place]?.id ?? ''
  const named = (place: number) => ({ token: idOf(place), symbol: candidates[place]?.symbol ?? '' })
  const toRebalance = ({ members, entered, exited, excluded, ...trades }: Trades) => ({
    scheduledAt: toTime(trades.scheduledAt),
    executedAt: toTime(trades.executedAt),
    decidedWith: toTime(trades.decidedWith),
    members: members.map(({ token: place, weight, units, price }) => ({ ...named(place), weight, units, price })),
    entered: entered.map(idOf),
    exited: exited.map(idOf),
    excluded: excluded.map(({ token: place, reason }) => ({ ...named(place), reason })),
    turnover: trades.turnover,
    cost: trades.cost,
    nav: trades.nav,
  })
  const { maxDrawdown, ...statistics } = toStatistics(days, index)
  const end = days.at(-1)?.at ?? 0
  return {
    rule: { ...own, top: own.top ?? null, cap: own.cap ?? null },
    start: toTime(days[0]?.at),
    end: toTime(end),
    nav: days.findLast(({ nav }) => nav !== null)?.nav ?? null,
    ...statistics,
    maxDrawdown: maxDrawdown && {
      value: maxDrawdown.value,
      peakAt: toTime(maxDrawdown.peakAt),
      troughAt: toTime(maxDrawdown.troughAt),
      recoveredAt: maxDrawdown.recoveredAt === null ? null : toTime(maxDrawdown.recoveredAt),
    },
    periodsPerYear: PERIODS_PER_YEAR,
    turnover: sum(rebalances.map(({ turnover }) => turnover)),
    cost: sum(rebalances.map(({ cost }) => cost)),
    rebalances: rebalances.map(toRebalance),
    exits: exits.map(({ token: place, at, reason, price }) => ({ ...named(place), at: toTime(at), reason, price })),
    missingPriceDays: missingPriceDays.map(({ day, tokens }) => ({ day: toTime(day), tokens: tokens.map(idOf) })),
    universe: {
      candidates: candidates.length,
      ended: candidates.filter(({ until }) => until !== undefined && until <= end).length,
    },
  }
}
