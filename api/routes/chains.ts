import { z } from 'zod'
import { defineKnownList } from '../lists/known-list.ts'
import { idValue } from '../records/values.ts'
import { toFileTime } from '../route/registry-files.ts'

const chainRecord = z.strictObject({
  _id: idValue,
  name: z.string(),
  slug: z.string(),
  chainId: z.int().nullable().meta({ description: 'EIP-155 number; null where the chain has none.' }),
})

/** The registry is read once, when the process starts. */
const LOADED_AS_OF = toFileTime('chains.json')

export const chainsRoute = defineKnownList({
  path: '/data/chains',
  tag: 'Registry',
  summary: 'The records behind chain ids',
  name: 'chains',
  record: chainRecord,
  find: ({ registry }) => ({
    records: registry.chains.map(({ id, name, slug, chainId }) => ({ _id: id, name, slug, chainId })),
    asOf: LOADED_AS_OF,
  }),
})
