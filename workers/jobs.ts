import type { Job } from './define.ts'
import daos from './jobs/daos.ts'
import dexTrades from './jobs/dex-trades.ts'
import governance from './jobs/governance.ts'
import holders from './jobs/holders.ts'
import index from './jobs/index-points.ts'
import indexToken from './jobs/index-token.ts'
import marketCap from './jobs/market-cap.ts'
import prices from './jobs/prices.ts'
import ratings from './jobs/ratings.ts'
import treasury from './jobs/treasury.ts'
import tvl from './jobs/tvl.ts'

/** Every job there is. A new dataset adds its file in `jobs/` and a line here. */
export const jobs: readonly Job[] = [
  prices,
  tvl,
  holders,
  dexTrades,
  marketCap,
  governance,
  treasury,
  ratings,
  daos,
  index,
  indexToken,
]
