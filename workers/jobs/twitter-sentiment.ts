import { type TwitterSentimentRow, twitterSentiment } from '../../shared/datasets/twitter-sentiment.ts'
import { type Candidate, defineJob } from '../job/define-job.ts'
import { toIso } from '../providers/answer.ts'
import { askEach } from '../providers/ask-each.ts'
import { xPosts } from '../providers/x/posts.ts'
import { LEXICON } from '../sentiment/lexicon.ts'
import { toMood } from '../sentiment/mood.ts'

/** The mood of recent posts about every live DAO with an account on X. Posts are judged here and not kept. */
export default defineJob({
  name: 'twitter-sentiment',
  cadence: '1d',
  dataset: twitterSentiment,
  providers: [xPosts],
  entities: ({ daos }) => daos.filter(({ live, twitter }) => live && twitter !== null),
  run: ({ provider, entities, slot, signal, log, refuse }) =>
    askEach(
      entities,
      async (dao) => {
        const texts = await provider.fetchTexts(dao, slot, signal)
        return texts.length === 0 ? undefined : { dao: dao.key, observed_at: toIso(slot), ...judge(texts) }
      },
      { concurrency: provider.concurrency, log, refuse },
    ),
})

function judge(texts: readonly string[]): Omit<Candidate<TwitterSentimentRow>, 'dao' | 'observed_at'> {
  const counts = { positive: 0, neutral: 0, negative: 0 }
  for (const text of texts) counts[toMood(text)] += 1
  return {
    positive_posts: counts.positive,
    neutral_posts: counts.neutral,
    negative_posts: counts.negative,
    lexicon: LEXICON,
  }
}
