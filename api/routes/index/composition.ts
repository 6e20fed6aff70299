import { z } from 'zod'
import { type Element, findComposition } from '../../../shared/registry/index-records.ts'
import type { Registry } from '../../../shared/registry/registry.ts'
import { answerKnown } from '../../records/known.ts'
import { idValue } from '../../records/values.ts'
import { defineRoute } from '../../route/define-route.ts'

const element = z.strictObject({
  token: idValue,
  quantity: z.number().meta({ description: 'Whole tokens in one basket.' }),
  name: z.string(),
  symbol: z.string(),
  dao: z.string().meta({ description: 'Name of the DAO.' }),
  chain: z.string().meta({ description: 'Name of the chain.' }),
  category: z.array(z.string()).meta({ description: "Names of the DAO's categories." }),
})

export const indexCompositionRoute = defineRoute({
  path: '/data/index/composition',
  aliases: ['/data/index/index-composition'],
  tag: 'Index',
  summary: 'What the Index holds now',
  query: {},
  record: element,
  datasets: [],
  handle: async (call) => {
    const { registry, now } = call
    const composition = findComposition(registry.index, now())
    const next = registry.index.compositions.find(({ validFrom }) => validFrom > now())
    const records = (composition?.elements ?? []).map((one) => toRecord(one, registry))
    const answer = await answerKnown(call, { name: 'composition', records, asOf: composition?.validFrom ?? null })
    return {
      ...answer,
      ...(next === undefined ? {} : { expiresAt: next.validFrom }),
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
