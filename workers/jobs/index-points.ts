import { indexPoints } from '../../shared/datasets/index-points.ts'
import { INTERVAL_SECONDS } from '../../shared/intervals.ts'
import { defineJob } from '../job/define-job.ts'
import { storedPrices } from '../providers/stored/prices.ts'

const SLOT_MS = INTERVAL_SECONDS['5m'] * 1000
/** Prices of a slot may arrive some slots late, so a tick also computes this many earlier slots. */
const SLOTS_BACK = 12

/** The value of the index in every slot with a complete set of prices, recomputed when prices are corrected. */
export default defineJob({
  name: 'index',
  cadence: '5m',
  dataset: indexPoints,
  providers: [storedPrices],
  entities: indexPoints.entities,
  history: { intervals: ['5m'], chunkEntities: 1, chunkPoints: 31 * 288 },
  run: async ({ provider, entities, range, slot, signal }) => {
    const slots = range ?? { from: slot - SLOTS_BACK * SLOT_MS, to: slot + SLOT_MS }
    const rows = await Promise.all(entities.map((index) => provider.fetchPoints(index, slots, signal)))
    return rows.flat()
  },
})
