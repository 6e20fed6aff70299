import { ACCOUNT_IDS, accountIds, twitterCounts } from '../../shared/datasets/twitter.ts'
import { DataError } from '../../shared/errors.ts'
import { defineJob } from '../job/define-job.ts'
import { recall } from '../job/state.ts'
import { xCounts } from '../providers/x/counts.ts'

/**
 * Followers, followed accounts and posts of every live DAO's account on X. Each account is billed. A run therefore
 * requests one request's worth of accounts, and they are stored before the next request.
 */
export default defineJob({
  name: 'twitter',
  cadence: '1d',
  dataset: twitterCounts,
  providers: [xCounts],
  entities: twitterCounts.entities,
  async run({ provider, entities, peers, slot, state, signal, refuse, putOff, noteMore }) {
    const requested = entities.slice(0, provider.accountsPerRequest)
    const remaining = entities.slice(provider.accountsPerRequest)
    const { rows, missing, ids } = await provider.fetchCounts(requested, slot, signal)
    // The remaining accounts of a slot may be those that X does not return.
    const isComplete = entities.length === peers.own.length
    if (isComplete && rows.length === 0 && !missing.every(({ isExplicit }) => isExplicit))
      throw new DataError('provider_unavailable', `no counts of any of ${requested.length} accounts`)
    for (const { dao, reason } of missing) refuse(dao, new DataError('provider_unknown', `x: ${reason}`))
    const stored = await recall(state, ACCOUNT_IDS, accountIds)
    state.set(ACCOUNT_IDS, JSON.stringify({ ...stored, ...Object.fromEntries(ids) }))
    if (remaining.length > 0) {
      putOff(remaining)
      noteMore()
    }
    return rows
  },
})
