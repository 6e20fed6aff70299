import { z } from 'zod'
import { idValue, timeValue } from '../record-values.ts'
import type { Registry } from '../registry/registry.ts'

/** A token of a composition with its quantity. */
export const indexElement = z
  .strictObject({
    token: idValue.describe('Id of the token.'),
    symbol: z.string().describe('Symbol of the token.'),
    quantity: z.number().describe('Whole tokens in one basket.'),
  })
  .meta({ id: 'IndexElement', description: 'A token of a composition with its quantity.' })

/** A composition of the Index. */
export const indexComposition = z
  .strictObject({
    _id: idValue.describe('Id of the composition: `composition` of the points of /data/index/historic.'),
    from: timeValue.describe('Start, inclusive: it applies to slots that begin at this time or later.'),
    to: timeValue.nullable().describe('Start of the next composition, exclusive; null for the current one.'),
    elements: z.array(indexElement).describe('The tokens and quantities of one basket.'),
  })
  .meta({ id: 'IndexComposition', description: 'A composition of the Index.' })

/** The elements of all compositions as parameters of `SELECT_INDEX_ELEMENTS`: times in Unix milliseconds, 0 for none. */
export function toElementParams({ index }: Registry) {
  const rows = index.compositions.flatMap(({ id, validFrom, elements }, place) => {
    const validTo = index.compositions[place + 1]?.validFrom ?? 0
    return elements.map(({ token, quantity }) => ({ ...{ id, validFrom, validTo }, token: token.key, quantity }))
  })
  return {
    element_tokens: rows.map(({ token }) => token),
    element_ids: rows.map(({ id }) => id),
    element_starts: rows.map(({ validFrom }) => validFrom),
    element_ends: rows.map(({ validTo }) => validTo),
    element_quantities: rows.map(({ quantity }) => Number(quantity)),
  }
}

/** SQL for the elements of the compositions that have started: `token`, `composition`, `valid_from`, `valid_to`, `quantity`. */
export const SELECT_INDEX_ELEMENTS = `
SELECT one.1 AS token, one.2 AS composition, fromUnixTimestamp64Milli(one.3, 'UTC') AS valid_from,
  if(one.4 = 0 OR one.4 > now_ms, NULL, fromUnixTimestamp64Milli(one.4, 'UTC')) AS valid_to, one.5 AS quantity
FROM
(
  SELECT toUnixTimestamp64Milli(now64(3)) AS now_ms, arrayJoin(arrayZip({element_tokens: Array(UInt64)}, {element_ids: Array(String)},
    {element_starts: Array(Int64)}, {element_ends: Array(Int64)}, {element_quantities: Array(Float64)})) AS one
)
WHERE one.3 <= now_ms`
