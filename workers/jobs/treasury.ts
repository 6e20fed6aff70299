import { daoTreasury } from '../../shared/datasets/treasury.ts'
import { defineJob } from '../job/define-job.ts'
import { type TreasuryDao, toTreasuryDaos } from '../providers/contracts/treasury-daos.ts'
import { defillamaTreasury } from '../providers/defillama/treasury.ts'
import { goldrush } from '../providers/goldrush/treasury.ts'
import { openTreasuryCheck } from '../providers/plausibility.ts'
import { requestEach } from '../providers/requests.ts'

/**
 * Daily treasury holdings of every live DAO. GoldRush needs a request per address, DefiLlama one per DAO; both have
 * history. If a provider knows only part of a DAO's treasury, it returns no row: the next provider is queried, and
 * stored rows remain.
 */
export default defineJob({
  name: 'treasury',
  cadence: '1d',
  dataset: daoTreasury,
  providers: [goldrush, defillamaTreasury],
  entities: toTreasuryDaos,
  openPlausibilityCheck: openTreasuryCheck,
  history: { intervals: ['1d'], chunkEntities: 4, chunkPoints: 365, firstRunDays: 30 },
  async run({ provider, ...run }) {
    const { entities, range, slot, signal } = run
    if (range === undefined) {
      const { concurrency } = provider
      return requestEach(entities, (dao) => provider.fetchTreasury(dao, slot, signal), {
        ...run,
        concurrency,
        expected: run.peers.own,
      })
    }
    const fetchOne = (dao: TreasuryDao) => provider.fetchHistory(dao, range, signal)
    // One entity per job: the days of one DAO already need many calls.
    return (await requestEach(entities, fetchOne, { ...run, concurrency: 1 })).flat()
  },
})
