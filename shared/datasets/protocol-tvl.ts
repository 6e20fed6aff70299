import { z } from 'zod'
import { MOST_HELD_USD } from './bounds.ts'
import { DEFILLAMA, defineDataset } from './define-dataset.ts'

/** The value locked in one protocol or in all protocols of a DAO, in USD. */
export const lockedValue = z.number().nonnegative().max(MOST_HELD_USD)

/** The total value locked of a DAO's protocols at one time, in USD. */
export const protocolTvlRow = z.strictObject({
  dao: z.number().int().nonnegative(),
  observed_at: z.iso.datetime(),
  tvl_usd: lockedValue,
})

export type ProtocolTvlRow = z.infer<typeof protocolTvlRow>

/** Total value locked, which fills `financialData.tvl` where the market-data provider has none. */
export const protocolTvl = defineDataset({
  name: 'tvl',
  title: 'Value locked',
  cadence: '1h',
  table: 'protocol_tvl',
  row: protocolTvlRow,
  entities: (registry) => registry.daos.filter((dao) => dao.live && dao.defillama !== null),
  needsDaos: true,
  entity: 'dao',
  isCollected: true,
  hasHistory: true,
  rowStep: ['1d'],
  series: { table: 'protocol_tvl', entity: 'dao', time: 'observed_at', provider: DEFILLAMA },
})
