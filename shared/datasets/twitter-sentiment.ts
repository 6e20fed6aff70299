import { z } from 'zod'
import { defineDataset } from './define-dataset.ts'

/** More posts than any sample has. */
const MOST_POSTS = 1e6

const count = z.int().nonnegative().max(MOST_POSTS)
const share = z.number().min(0).max(1)

/**
 * The sentiment of a sample of posts about a DAO. The counts use each post's most probable mood. The shares are the means
 * of the probabilities of all posts; the neutral share is the rest. `unknown_posts` counts posts without any known word.
 * Rows of another `model` or `lexicon` are not comparable. The posts themselves are not stored.
 */
export const twitterSentimentRow = z
  .strictObject({
    dao: z.int().nonnegative(),
    observed_at: z.iso.datetime(),
    positive_posts: count,
    neutral_posts: count,
    negative_posts: count,
    positive_share: share,
    negative_share: share,
    unknown_posts: count,
    model: z.string().min(1),
    lexicon: z.string().min(1),
  })
  .refine((row) => row.positive_posts + row.neutral_posts + row.negative_posts > 0, 'no post')

export type TwitterSentimentRow = z.infer<typeof twitterSentimentRow>

/** Sentiment of posts on X: a row per DAO and day. */
export const twitterSentiment = defineDataset({
  name: 'twitter-sentiment',
  cadence: '1d',
  table: 'twitter_sentiment',
  row: twitterSentimentRow,
  entities: ({ daos }) => daos.filter(({ live, twitter }) => live && twitter !== null),
  needsDaos: true,
  entity: 'dao',
  isCollected: true,
  hasTextsOfPeople: true,
  series: { table: 'twitter_sentiment', entity: 'dao', time: 'observed_at' },
})
