import { z } from 'zod'
import { idValue, numberOrNull, timeValue, uint32 } from '../../shared/record-values.ts'
import { oneOf } from '../parameters/kinds.ts'
import type { Computed } from './answer.ts'

/** A row of one of the report's tables. Members of other tables are null. */
export const basketTableRow = z
  .strictObject({
    at: timeValue.describe(
      'The day of the row: of the trades, of the exit, or without a price; of an exclusion the day of the trades.',
    ),
    scheduledAt: timeValue.nullable().describe('The due day of the rebalance.'),
    decidedWith: timeValue.nullable().describe('The day whose values decided.'),
    token: idValue.nullable().describe('Id of the token.'),
    symbol: z.string().nullable().describe('Symbol of the token.'),
    weight: numberOrNull.describe('Part of the basket, as a fraction.'),
    units: numberOrNull.describe('Held quantity of the token.'),
    price: numberOrNull.describe('Price of the trade, or the last known one of an exit, in US dollars.'),
    entered: z.boolean().nullable().describe('Whether the token was not held before.'),
    reason: z.string().nullable().describe('Why the token is not held, or why it left.'),
    members: uint32.nullable().describe('Number of held tokens.'),
    turnover: numberOrNull.describe('Traded part of the basket, one way, as a fraction.'),
    cost: numberOrNull.describe('Cost, in the unit of `base`.'),
    nav: numberOrNull.describe('Value after the cost.'),
  })
  .meta({ id: 'BasketTableRow', description: 'A row of a table of a back-test.' })

type Row = z.infer<typeof basketTableRow>
type Member = keyof Row

/** The tables of a report, each with the members of its rows. */
const TABLES = {
  holdings: ['at', 'scheduledAt', 'token', 'symbol', 'weight', 'units', 'price', 'entered'],
  rebalances: ['at', 'scheduledAt', 'decidedWith', 'members', 'turnover', 'cost', 'nav'],
  exclusions: ['at', 'scheduledAt', 'token', 'symbol', 'reason'],
  exits: ['at', 'token', 'symbol', 'price', 'reason'],
  missingPriceDays: ['at', 'token', 'symbol'],
} as const satisfies Readonly<Record<string, readonly Member[]>>

type TableName = keyof typeof TABLES
const NAMES = Object.keys(TABLES) as [TableName, ...TableName[]]

export const tableParameter = oneOf(
  NAMES,
  `With another format than JSON, the table of the report: ${NAMES.map((name) => `\`${name}\` has the columns ${TABLES[name].join(', ')}`).join('; ')}.`,
  'rebalances',
).default('holdings')

/** The members of a table's rows. */
export const membersOf = (table: TableName): readonly string[] => TABLES[table]

const toTime = (ms: number) => new Date(ms).toISOString()

const EMPTY: Omit<Row, 'at'> = {
  ...{ scheduledAt: null, decidedWith: null, token: null, symbol: null, weight: null, units: null, price: null },
  ...{ entered: null, reason: null, members: null, turnover: null, cost: null, nav: null },
}

/** The rows of a table, oldest first. */
export function toTableRows({ candidates, test }: Computed, table: TableName): Row[] {
  const named = (place: number) => ({ token: candidates[place]?.id ?? null, symbol: candidates[place]?.symbol ?? null })
  const perRebalance = (toRows: (trades: (typeof test.rebalances)[number]) => Partial<Row>[]) =>
    test.rebalances.flatMap((trades) => {
      const days = { at: toTime(trades.executedAt), scheduledAt: toTime(trades.scheduledAt) }
      return toRows(trades).map((row) => ({ ...EMPTY, ...days, ...row }))
    })
  const rows: Readonly<Record<TableName, () => Row[]>> = {
    holdings: () =>
      perRebalance(({ members, entered }) =>
        members.map(({ token, weight, units, price }) => {
          return { ...named(token), weight, units, price, entered: entered.includes(token) }
        }),
      ),
    rebalances: () =>
      perRebalance(({ decidedWith, members, turnover, cost, nav }) => [
        { decidedWith: toTime(decidedWith), members: members.length, turnover, cost, nav },
      ]),
    exclusions: () =>
      perRebalance(({ excluded }) => excluded.map(({ token, reason }) => ({ ...named(token), reason }))),
    exits: () =>
      test.exits.map(({ token, at, price, reason }) => ({ ...EMPTY, at: toTime(at), ...named(token), price, reason })),
    missingPriceDays: () =>
      test.missingPriceDays.flatMap(({ day, tokens }) =>
        tokens.map((token) => ({ ...EMPTY, at: toTime(day), ...named(token) })),
      ),
  }
  return rows[table]()
}
