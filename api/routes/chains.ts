import { z } from 'zod'
import { idValue } from '../formats/formats.ts'
import { defineComputedList } from '../lists/lists.ts'

const chainRecord = z
  .strictObject({
    _id: idValue.describe('Id of the chain.'),
    name: z.string().describe('Name of the chain.'),
    slug: z.string().describe('Name in URLs; the parameter `chain` accepts it and the id.'),
    chainId: z.int().nullable().describe('EIP-155 number; null if the chain has none.'),
  })
  .meta({ id: 'Chain', description: 'A blockchain.' })

export const chainsRoute = defineComputedList({
  operation: 'listChains',
  path: '/data/chains',
  tag: 'Registry',
  summary: 'The records behind chain ids',
  description: 'All chains in one page, by name: the meaning of `chain` of tokens and DAOs, and of the parameter.',
  name: 'chains',
  record: chainRecord,
  find: ({ registry }) => ({
    records: registry.chains.map(({ id, name, slug, chainId }) => ({ _id: id, name, slug, chainId })),
    asOf: registry.changedAt,
  }),
})
