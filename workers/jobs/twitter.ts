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
    const asked = entities.slice(0, provider.accountsPerRequest)
    const left = entities.slice(provider.accountsPerRequest)
    const { rows, missing, ids } = await provider.fetchCounts(asked, slot, signal)
    // The remaining accounts of a slot may be those that X does not return.
    const isWhole = entities.length === peers.own.length
    if (isWhole && rows.length === 0 && !missing.every(({ isTold }) => isTold))
      throw new DataError('provider_unavailable', `no counts of any of ${asked.length} accounts`)
    for (const { dao, reason } of missing) refuse(dao, new DataError('provider_unknown', `x: ${reason}`))
    const known = await recall(state, ACCOUNT_IDS, accountIds)
    state.set(ACCOUNT_IDS, JSON.stringify({ ...known, ...Object.fromEntries(ids) }))
    if (left.length > 0) {
      putOff(left)
      noteMore()
    }
    return rows
  },
})
