import { twitterCounts } from '../../shared/datasets/twitter.ts'
import { DataError } from '../../shared/errors.ts'
import { defineJob } from '../job/define-job.ts'
import { xCounts } from '../providers/x/counts.ts'

/**
 * Followers, followed accounts and posts of every live DAO's account on X. The counts of a day are one request, which
 * costs nothing when it is repeated on the same day: so a slot has all accounts, or it is tried again.
 */
export default defineJob({
  name: 'twitter',
  cadence: '1d',
  dataset: twitterCounts,
  providers: [xCounts],
  entities: ({ daos }) => daos.filter(({ live, twitter }) => live && twitter !== null),
  async run({ provider, entities, slot, signal, log }) {
    const { rows, missing } = await provider.fetchCounts(entities, slot, signal)
    if (missing.length > 0) log.warn({ missing }, 'no counts: what is stored stays')
    if (rows.length === 0)
      throw new DataError('provider_unavailable', `no counts of any of ${entities.length} accounts`)
    return rows
  },
})
