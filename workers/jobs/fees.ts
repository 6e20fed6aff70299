import { daoFees } from '../../shared/datasets/fees.ts'
import { DataError } from '../../shared/errors.ts'
import { DAY_MS } from '../../shared/intervals.ts'
import type { Dao } from '../../shared/registry/entities.ts'
import { defineJob } from '../job/define-job.ts'
import { defillamaFees } from '../providers/defillama/fees.ts'
import { requestEach } from '../providers/requests.ts'

/** A slot reads again the days before yesterday, which the provider may have counted in part when they were read first. */
const REREAD_DAYS = 3
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
  async run({ provider, omit, ...run }) {
    const { entities, slot, signal } = run
    const range = run.range ?? { from: slot - REREAD_DAYS * DAY_MS, to: slot }
    const fetchOne = async (dao: Dao) => {
      const { rows, omitted } = await provider.fetchFees(dao, range, signal)
      if (omitted.count > 0) omit(dao, omitted)
      if (rows.length === 0 && run.range === undefined) throw toSilence(dao)
      return rows
    }
    return (await requestEach(entities, fetchOne, { ...run, concurrency: CONCURRENCY, expected: run.peers.own })).flat()
  },
})

/** The reason for a protocol with fees, but without any in the last days. */
const toSilence = ({ name }: Dao) => new DataError('provider_unknown', `defillama: no fees of ${name} in the last days`)
