import { daoFees } from '../../shared/datasets/fees.ts'
import { DataError } from '../../shared/errors.ts'
import { DAY_MS } from '../../shared/intervals.ts'
import type { Dao } from '../../shared/registry/entities.ts'
import { defineJob } from '../job/define-job.ts'
import { askEach } from '../providers/ask.ts'
import { defillamaFees } from '../providers/defillama/fees.ts'

/** A slot reads again the days before yesterday, which the provider may have counted in part when they were read first. */
const READ_AGAIN_DAYS = 3
/** Answers have all days of a protocol: a few at a time. */
const CONCURRENCY = 2

/**
 * Fees and revenue of every live DAO with protocols that DefiLlama knows, of the days that are over. The running day is
 * not stored: its value still grows.
 */
export default defineJob({
  name: 'fees',
  cadence: '1d',
  dataset: daoFees,
  providers: [defillamaFees],
  entities: daoFees.entities,
  history: { intervals: ['1d'], chunkEntities: 20, chunkPoints: 2500, firstRunDays: 32 },
  async run({ provider, leaveOut, ...run }) {
    const { entities, slot, signal } = run
    const range = run.range ?? { from: slot - READ_AGAIN_DAYS * DAY_MS, to: slot }
    const ask = async (dao: Dao) => {
      const { rows, leftOut } = await provider.fetchFees(dao, range, signal)
      if (leftOut.count > 0) leaveOut(dao, leftOut)
      if (rows.length === 0 && run.range === undefined) throw toSilence(dao)
      return rows
    }
    return (await askEach(entities, ask, { ...run, concurrency: CONCURRENCY, whole: run.peers.own })).flat()
  },
})

/** What it means that a protocol has fees, and none of the newest days. */
const toSilence = ({ name }: Dao) => new DataError('provider_unknown', `defillama: no fees of ${name} in the last days`)
