import { z } from 'zod'
import { idValue, shareOfOne, timeValue } from '../record-values.ts'
import { defineDataset, STORED_PROVIDER } from './define-dataset.ts'
import { defineSeries } from './define-series.ts'

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
  title: 'Twitter sentiment',
  cadence: '1d',
  table: 'twitter_sentiment',
  row: twitterSentimentRow,
  entities: ({ daos }) => daos.filter(({ live, twitter }) => live && twitter !== null),
  needsDaos: true,
  entity: 'dao',
  isCollected: true,
  isAttributed: true,
  hasTextsOfPeople: true,
  series: { table: 'twitter_sentiment', entity: 'dao', time: 'observed_at', provider: STORED_PROVIDER },
})

/** The shares of posts by mood. */
export const moodShares = {
  positive: shareOfOne.describe('Mean probability of the posts to be positive, from 0 to 1.'),
  neutral: shareOfOne.describe('Mean probability of the posts to be neutral, from 0 to 1.'),
  negative: shareOfOne.describe('Mean probability of the posts to be negative, from 0 to 1.'),
}

/** Finer than one post of the largest sample. */
const DECIMALS = 4

const POSITIVE = `round(positive_share, ${DECIMALS})`
// The rounding difference goes to the neutral share; if that is smaller than one decimal, to the negative share.
const IS_WITHOUT_NEUTRAL = `(1 - positive_share - negative_share < 1e-${DECIMALS})`
const NEGATIVE = `if(${IS_WITHOUT_NEUTRAL}, round(1 - ${POSITIVE}, ${DECIMALS}), round(negative_share, ${DECIMALS}))`
const NEUTRAL = `if(${IS_WITHOUT_NEUTRAL}, 0., round(1 - ${POSITIVE} - ${NEGATIVE}, ${DECIMALS}))`

/** SQL for the shares of a row, by the names of `moodShares`: decimals that sum to exactly 1 (docs/contract.md, section 4). */
export const MOOD_SHARES = { positive: POSITIVE, neutral: NEUTRAL, negative: NEGATIVE } as const

/** The mood of posts by day. */
export const twitterSentimentSeries = defineSeries(twitterSentiment, {
  about: 'dao',
  record: z
    .strictObject({
      recordedAt: timeValue.describe('The first moment of the day, in UTC.'),
      _id: idValue.describe('Id of the point.'),
      dao: idValue.describe('Id of the DAO.'),
      sentiment: z.strictObject(moodShares).describe('Shares of the moods in a sample of posts, which sum to 1.'),
    })
    .meta({ id: 'TwitterSentimentPoint', description: 'The mood of posts about a DAO on one day.' }),
  values: MOOD_SHARES,
})

/** The sample of posts of each day. */
export const twitterSampleSeries = defineSeries(twitterSentiment, {
  about: 'dao',
  record: z
    .strictObject({
      recordedAt: timeValue.describe('The first moment of the day, in UTC.'),
      _id: idValue.describe('Id of the point: that of the shares of the same day.'),
      dao: idValue.describe('Id of the DAO.'),
      posts: z.int().describe('Number of classified posts.'),
      unknownPosts: z
        .int()
        .nullable()
        .describe('Number of posts without a known word, which count as neutral; null if they were not counted.'),
      model: z
        .string()
        .describe('Version of the model that classified the posts. Values of different versions are not comparable.'),
    })
    .meta({ id: 'TwitterSentimentSample', description: 'The sample behind the mood of one day.' }),
  values: {
    posts: 'positive_posts + neutral_posts + negative_posts',
    unknown_posts: 'unknown_posts',
    model: 'model',
  },
})
