import { type TwitterSentimentRow, twitterSentiment } from '../../shared/datasets/twitter-sentiment.ts'
import { DataError } from '../../shared/errors.ts'
import type { Dao } from '../../shared/registry/entities.ts'
import { type Candidate, defineJob } from '../job/define-job.ts'
import { createAllowance } from '../job/state.ts'
import { toIso } from '../providers/answer.ts'
import { NOT_SENT, requestEach } from '../providers/requests.ts'
import { xPosts } from '../providers/x/posts.ts'
import { openSamples, type Sample } from '../sentiment/sample.ts'

/**
 * The mood of recent posts about every live DAO with an account on X. Posts are classified here and not stored. A large
 * sample of all DAOs takes longer than a job, so a run reads part of the pages and the next continues.
 */
export default defineJob({
  name: 'twitter-sentiment',
  cadence: '1d',
  dataset: twitterSentiment,
  providers: [xPosts],
  entities: twitterSentiment.entities,
  run: async ({ provider, ...run }) => {
    const { entities, slot, state, signal, refuse, omit, putOff, noteMore } = run
    const allowance = createAllowance(provider.pagesPerRun)
    const samples = await openSamples(provider, entities, slot, { state, allowance, signal })
    const quiet: Dao[] = []
    const readOne = async (dao: Dao): Promise<Candidate<TwitterSentimentRow>[] | typeof NOT_SENT> => {
      const sample = await samples.read(dao)
      const count = samples.unreadable(dao)
      if (count > 0) omit(dao, { count, reason: 'data.*: expected a post with a text' })
      if (sample === undefined) {
        putOff([dao])
        noteMore()
        return NOT_SENT
      }
      if (sample.positive + sample.neutral + sample.negative > 0) return [toRow(dao, slot, sample)]
      quiet.push(dao)
      return []
    }
    const rows = (await requestEach(entities, readOne, { ...run, concurrency: provider.concurrency })).flat()
    await samples.stored()
    const hasPosts = rows.length > 0 || (await state.get(SLOT_WITH_POSTS)) === String(slot)
    if (hasPosts) state.set(SLOT_WITH_POSTS, String(slot))
    for (const dao of quiet) refuse(dao, hasPosts || quiet.length === 1 ? NO_POSTS : SILENCE)
    return rows
  },
})

/** State: the newest slot with posts about any DAO. */
const SLOT_WITH_POSTS = 'heard'
const NO_POSTS = new DataError(
  'provider_unknown',
  'x: no post about it in a supported language in the seven days before',
)
/** Some DAO is always mentioned, so a result without any posts means that the search has failed. */
const SILENCE = new DataError('provider_unavailable', 'x: no post about any account')

function toRow(dao: Dao, slot: number, sample: Sample): Candidate<TwitterSentimentRow> {
  const judged = sample.positive + sample.neutral + sample.negative
  return {
    dao: dao.key,
    observed_at: toIso(slot),
    positive_posts: sample.positive,
    neutral_posts: sample.neutral,
    negative_posts: sample.negative,
    positive_share: sample.positiveSum / judged,
    negative_share: sample.negativeSum / judged,
    unknown_posts: sample.unknown,
    model: sample.model,
    lexicon: sample.lexicon,
  }
}
