import { z } from 'zod'
import { defineComputedList } from '../lists/computed-list.ts'
import { idValue } from '../records/table.ts'

const chainRecord = z
  .strictObject({
    _id: idValue.describe('Id of the chain.'),
    name: z.string().describe('Name of the chain.'),
    slug: z.string().describe('Its name as it stands in URLs; `chain` takes it as well as the id.'),
    chainId: z.int().nullable().describe('EIP-155 number; null where the chain has none.'),
  })
  .meta({ id: 'Chain', description: 'A blockchain.' })

export const chainsRoute = defineComputedList({
  operation: 'listChains',
  path: '/data/chains',
  tag: 'Registry',
  summary: 'The records behind chain ids',
  description: 'All chains at once, by name: what `chain` of tokens and DAOs and the parameter of the same name mean.',
  name: 'chains',
  record: chainRecord,
  find: ({ registry }) => ({
    records: registry.chains.map(({ id, name, slug, chainId }) => ({ _id: id, name, slug, chainId })),
    asOf: registry.changedAt,
  }),
})
