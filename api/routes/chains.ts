import { z } from 'zod'
import { answerKnown } from '../records/known.ts'
import { idValue } from '../records/values.ts'
import { defineRoute } from '../route/define-route.ts'
import { toFileTime } from '../route/registry-files.ts'

const chainRecord = z.strictObject({
  _id: idValue,
  name: z.string(),
  slug: z.string(),
  chainId: z.int().nullable().meta({ description: 'EIP-155 number; null where the chain has none.' }),
})

/** The registry is read once, when the process starts. */
const LOADED_AS_OF = toFileTime('chains.json')

export const chainsRoute = defineRoute({
  path: '/data/chains',
  tag: 'Registry',
  summary: 'The records behind chain ids',
  query: {},
  record: chainRecord,
  datasets: [],
  handle: (call) => {
    const records = call.registry.chains.map(({ id, name, slug, chainId }) => ({ _id: id, name, slug, chainId }))
    return answerKnown(call, { name: 'chains', records, asOf: LOADED_AS_OF })
  },
})
