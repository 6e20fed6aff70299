import { z } from 'zod'
import { type Element, findComposition } from '../../../shared/registry/index-records.ts'
import type { Registry } from '../../../shared/registry/registry.ts'
import { idValue } from '../../formats/formats.ts'
import { defineComputedList } from '../../lists/lists.ts'

const element = z
  .strictObject({
    token: idValue.describe('Id of the token.'),
    quantity: z.number().meta({ description: 'Whole tokens in one basket.' }),
    name: z.string().describe('Name of the token.'),
    symbol: z.string().describe('Symbol of the token.'),
    dao: z.string().meta({ description: 'Name of the DAO.' }),
    chain: z.string().meta({ description: 'Name of the chain.' }),
    category: z.array(z.string()).meta({ description: "Names of the DAO's categories." }),
  })
  .meta({ id: 'IndexMember', description: 'A token in the basket of the Index.' })

export const indexCompositionRoute = defineComputedList({
  operation: 'getIndexComposition',
  path: '/data/index/composition',
  aliases: ['/data/index/index-composition'],
  tag: 'Index',
  summary: 'Composition of the Index, now or at a past time',
  description:
    'Every token of the basket with how many of it one basket holds. With `asOf` the basket of that moment; none before the launch.',
  name: 'composition',
  record: element,
  hasPast: true,
  find: ({ registry, now }, asOf) => {
    const composition = findComposition(registry.index, asOf ?? now())
    const next = registry.index.compositions.find(({ validFrom }) => validFrom > now())
    return {
      records: (composition?.elements ?? []).map((one) => toRecord(one, registry)),
      asOf: composition?.validFrom ?? null,
      ...(next === undefined || asOf !== undefined ? {} : { expiresAt: next.validFrom }),
    }
  },
})

function toRecord({ token, quantity }: Element, registry: Registry): z.infer<typeof element> {
  const dao = registry.daoBySlug.get(token.dao)
  return {
    token: token.id,
    quantity: Number(quantity),
    name: token.name,
    symbol: token.symbol,
    dao: dao?.name ?? token.dao,
    chain: registry.chainBySlug.get(token.chain)?.name ?? token.chain,
    category: (dao?.categories ?? []).map((slug) => registry.categoryBySlug.get(slug)?.name ?? slug),
  }
}
