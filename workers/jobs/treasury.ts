import { daoTreasury } from '../../shared/datasets/treasury.ts'
import { defineJob } from '../job/define-job.ts'
import { askEach } from '../providers/ask-each.ts'
import { type TreasuryDao, toTreasuryDaos } from '../providers/contracts/treasury-daos.ts'
import { defillamaTreasury } from '../providers/defillama/treasury.ts'
import { openTreasuryDoubt } from '../providers/doubt.ts'
import { goldrush } from '../providers/goldrush/treasury.ts'

/**
 * What the treasury of every live DAO holds, once a day. GoldRush needs a request for each address, DefiLlama one for
 * each DAO; both have history. A DAO of whose treasury only a part is known gets no row from that provider: the next
 * one is asked, and what is stored stays.
 */
export default defineJob({
  name: 'treasury',
  cadence: '1d',
  dataset: daoTreasury,
  providers: [goldrush, defillamaTreasury],
  entities: toTreasuryDaos,
  doubt: openTreasuryDoubt,
  history: { intervals: ['1d'], chunkEntities: 4, chunkPoints: 365, firstRunDays: 30 },
  async run({ provider, ...run }) {
    const { entities, range, slot, signal } = run
    if (range === undefined) {
      const { concurrency } = provider
      return askEach(entities, (dao) => provider.fetchTreasury(dao, slot, signal), {
        ...run,
        concurrency,
        whole: run.peers.own,
      })
    }
    const ask = (dao: TreasuryDao) => provider.fetchHistory(dao, range, signal)
    // The days of one DAO are many calls already.
    return (await askEach(entities, ask, { ...run, concurrency: 1 })).flat()
  },
})
