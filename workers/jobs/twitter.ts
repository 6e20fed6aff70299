import { twitterCounts } from '../../shared/datasets/twitter.ts'
import { DataError } from '../../shared/errors.ts'
import { defineJob } from '../job/define-job.ts'
import { xCounts } from '../providers/x/counts.ts'

/**
 * Followers, followed accounts and posts of every live DAO's account on X: one request for a hundred accounts, which
 * costs nothing when it is repeated on the same day.
 */
export default defineJob({
  name: 'twitter',
  cadence: '1d',
  dataset: twitterCounts,
  providers: [xCounts],
  entities: ({ daos }) => daos.filter(({ live, twitter }) => live && twitter !== null),
  async run({ provider, entities, slot, signal, refuse }) {
    const { rows, missing } = await provider.fetchCounts(entities, slot, signal)
    if (rows.length === 0)
      throw new DataError('provider_unavailable', `no counts of any of ${entities.length} accounts`)
    for (const { dao, reason } of missing) refuse(dao, new DataError('provider_unknown', `x: ${reason}`))
    return rows
  },
})
