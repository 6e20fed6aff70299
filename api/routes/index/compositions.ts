import type { z } from 'zod'
import { indexComposition } from '../../../shared/datasets/index-compositions.ts'
import { defineComputedList } from '../../lists/lists.ts'

export const indexCompositionsRoute = defineComputedList({
  operation: 'listIndexCompositions',
  path: '/data/index/compositions',
  tag: 'Index',
  summary: 'Everything that the Index ever held, and since when',
  description:
    'All compositions, oldest first. With the prices of /data/tokens/historic-financial you can recompute each value of the Index: see /guides/index-values. With `asOf`, the compositions that had started by then.',
  name: 'index-compositions',
  record: indexComposition,
  hasPast: true,
  find: ({ registry: { index }, now }, asOf) => {
    const at = asOf ?? now()
    const valid = index.compositions.filter(({ validFrom }) => validFrom <= at)
    const next = index.compositions.find(({ validFrom }) => validFrom > now())
    return {
      records: valid.map(({ id, validFrom, elements }, place): z.infer<typeof indexComposition> => {
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
