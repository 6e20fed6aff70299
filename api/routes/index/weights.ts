import { z } from 'zod'
import { indexPoints } from '../../../shared/datasets/index-points.ts'
import { idValue, numberOrNull } from '../../../shared/record-values.ts'
import type { Element } from '../../../shared/registry/index-records.ts'
import { type Contributions, toContributions, toSlots, toWorth } from '../../basket/contributions.ts'
import { findSlot, type Run, readRuns, readSlotPrices } from '../../basket/runs.ts'
import { INDEX_HEADERS } from '../../http/headers.ts'
import { defineComputedList } from '../../lists/lists.ts'
import { oneOf } from '../../parameters/kinds.ts'

const weight = z
  .strictObject({
    token: idValue.describe('Id of the token.'),
    symbol: z.string().describe('Symbol of the token.'),
    quantity: z
      .number()
      .describe(
        'Quantity of the token in one basket, in whole tokens; 0 for a token that was removed within the 24 hours.',
      ),
    priceUsd: numberOrNull.describe(
      'First price in the slot in US dollars, from which the value of the Index is computed; null for a removed token without a price.',
    ),
    valueUsd: numberOrNull.describe(
      '`quantity` times `priceUsd`, in US dollars; null if the price is no longer known.',
    ),
    weight: numberOrNull.describe(
      'Its part of the value of the basket, as a fraction from 0 to 1 (0.015 is 1.5 %); all of them sum to 1. Null where a price is no longer known.',
    ),
    contribution24h: numberOrNull.describe(
      'Its part of the change of the Index over 24 hours, in percentage points (1.5 is 1.5 points of `X-Index-Change-24h`); null if the Index had no value 24 hours before.',
    ),
  })
  .meta({ id: 'IndexWeight', description: 'Weight of a token in the value of the Index and in its change.' })

const weightOverDays = weight
  .extend({
    contribution: numberOrNull.describe(
      'Its part of the change of the Index over `days`, in percentage points (1.5 is 1.5 points of `X-Index-Change`); null if the Index had no value then. With `days`.',
    ),
  })
  .meta({ id: 'IndexWeightOverDays', description: 'A weight, with its contribution over several days. With `days`.' })

type Weight = z.infer<typeof weight> & { readonly contribution?: number | null }

export const indexWeightsRoute = defineComputedList({
  operation: 'listIndexWeights',
  path: '/data/index/weights',
  tag: 'Index',
  summary: 'Weight of each token in the Index, and its contribution to the change',
  description:
    'The members of the basket in the newest 5-minute slot in which the Index has a value, largest first. The sum of `valueUsd` is that value, also in `X-Index-Value`. `weight` is a fraction of 1. `contribution24h` is in percentage points: quantity times the price change since the slot 24 hours before, in percent of the value of that slot, under each composition of these 24 hours; a token that was removed since then is listed with a quantity of 0. The effect of a rebalance is no contribution: `X-Index-Rebalance-24h` is the difference between the new and the old basket at the prices of the first slot of the new one. All contributions and the rebalance add up to `X-Index-Change-24h`. With `asOf`, the newest slot that was known then; the list is empty if that was stale.',
  name: 'index-weights',
  record: weight,
  recordWith: { record: weightOverDays, members: { contribution: 'days' }, shapes: [weightOverDays] },
  parameters: {
    days: oneOf(
      ['7', '30', '90'],
      'Adds `contribution`, the contribution over these days. They begin with the slot that many days before the newest one, or with the last one up to a day earlier. Tokens that were removed within these days are listed, too.',
      '7',
    ).optional(),
  },
  hasPast: true,
  datasets: [indexPoints],
  headers: INDEX_HEADERS,
  find: async ({ db, registry: { index }, now, query: { days } }, asOf) => {
    const slot = await findSlot(db, index, { now: now(), asOf })
    if (slot === undefined) return { records: [], asOf: null }
    const [runs, longRuns] = await Promise.all([
      readRuns(db, index, slot.at),
      days === undefined ? [] : readRuns(db, index, slot.at, Number(days)),
    ])
    const runElements = [...runs, ...longRuns].flatMap(({ composition }) => composition.elements)
    const elements = [...slot.composition.elements, ...runElements]
    const tokens = [...new Set(elements.map(({ token }) => token.key))]
    const priceIn = await readSlotPrices(db, tokens, toSlots([...runs, ...longRuns], slot.at))
    const priceOf = (token: number) => priceIn(token, slot.at)
    const value = toWorth(slot.composition, priceOf)
    const contributions = toContributions(runs, slot.at, priceIn)
    const overDays = toContributions(longRuns, slot.at, priceIn)
    const members = new Set(slot.composition.elements.map(({ token }) => token.key))
    const removed = new Map(
      elements.flatMap((one) => (members.has(one.token.key) ? [] : [[one.token.key, one] as const])),
    )
    const gone = [...removed.values()].map((one) => ({ ...one, quantity: '0' }))
    const records = [...slot.composition.elements, ...gone].map((one) => ({
      ...toRecord(one, { value, price: priceOf(one.token.key), contributions }),
      ...(days === undefined ? {} : { contribution: overDays?.of.get(one.token.key) ?? null }),
    }))
    const headers = {
      ...(Number.isFinite(value) ? { 'X-Index-Value': String(value) } : {}),
      ...toChange(contributions),
      ...toLongChange(overDays, longRuns),
    }
    return { records: records.sort((a, b) => (b.valueUsd ?? 0) - (a.valueUsd ?? 0)), asOf: slot.asOf, headers }
  },
})

const toChange = (contributions: Contributions | undefined) =>
  contributions && {
    'X-Index-Change-24h': String(contributions.change),
    'X-Index-Rebalance-24h': String(contributions.rebalance),
  }

const toLongChange = (contributions: Contributions | undefined, [begin]: readonly Run[]) =>
  contributions &&
  begin && {
    'X-Index-Change': String(contributions.change),
    'X-Index-Rebalance': String(contributions.rebalance),
    'X-Index-Since': new Date(begin.first).toISOString(),
  }

function toRecord(
  { token, quantity }: Element,
  valuation: {
    readonly value: number
    readonly price: number | undefined
    readonly contributions: Contributions | undefined
  },
): Weight {
  const { price = null, value, contributions } = valuation
  const held = Number(quantity)
  // The value of a quantity of 0 is 0, even if the price is unknown.
  const valueUsd = held === 0 ? 0 : price === null ? null : held * price
  const share = valueUsd === null ? Number.NaN : valueUsd / value
  return {
    token: token.id,
    symbol: token.symbol,
    quantity: held,
    priceUsd: price,
    valueUsd,
    weight: Number.isFinite(share) ? share : null,
    contribution24h: contributions?.of.get(token.key) ?? null,
  }
}
