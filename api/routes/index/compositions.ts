import { z } from 'zod'
import { idValue, timeValue } from '../../formats/formats.ts'
import { defineComputedList } from '../../lists/lists.ts'

const element = z
  .strictObject({
    token: idValue.describe('Id of the token.'),
    symbol: z.string().describe('Symbol of the token.'),
    quantity: z.number().describe('Whole tokens in one basket.'),
  })
  .meta({ id: 'IndexElement', description: 'A token of a composition with its quantity.' })

const composition = z
  .strictObject({
    _id: idValue.describe('Id of the composition: `composition` of the points of /data/index/historic.'),
    from: timeValue.describe('Start, inclusive: it applies to slots that begin at this time or later.'),
    to: timeValue.nullable().describe('Start of the next composition, exclusive; null for the current one.'),
    elements: z.array(element).describe('The tokens and quantities of one basket.'),
  })
  .meta({ id: 'IndexComposition', description: 'A composition of the Index.' })

export const indexCompositionsRoute = defineComputedList({
  operation: 'listIndexCompositions',
  path: '/data/index/compositions',
  tag: 'Index',
  summary: 'Everything that the Index ever held, and since when',
  description:
    'All compositions, oldest first. With the prices of /data/tokens/historic-financial you can recompute each value of the Index: see /guides/index-values. With `asOf`, the compositions that had started by then.',
  name: 'index-compositions',
  record: composition,
  hasPast: true,
  find: ({ registry: { index }, now }, asOf) => {
    const at = asOf ?? now()
    const valid = index.compositions.filter(({ validFrom }) => validFrom <= at)
    const next = index.compositions.find(({ validFrom }) => validFrom > now())
    return {
      records: valid.map(({ id, validFrom, elements }, place): z.infer<typeof composition> => {
        const following = valid[place + 1]
        return {
          _id: id,
          from: new Date(validFrom).toISOString(),
          to: following === undefined ? null : new Date(following.validFrom).toISOString(),
          elements: elements.map(({ token, quantity }) => ({
            token: token.id,
            symbol: token.symbol,
            quantity: Number(quantity),
          })),
        }
      }),
      asOf: valid.at(-1)?.validFrom ?? null,
      ...(next === undefined || asOf !== undefined ? {} : { expiresAt: next.validFrom }),
    }
  },
})
