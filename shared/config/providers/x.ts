import { z } from 'zod'
import { integer } from '../numbers.ts'
import { count, declareProvider, text, url } from './declaration.ts'

const POSTS = { least: 10, most: 1000 }

export const xDeclaration = declareProvider({
  title: 'X',
  about:
    'Twitter counts and sentiment. Needs a bearer token and costs money per use: counts $0.01 per DAO and day, sentiment $0.005 per post. To collect counts only, set DATASETS_OFF=twitter-sentiment.',
  settings: {
    X_BEARER_TOKEN: text.optional(),
    X_BASE_URL: url.default('https://api.x.com'),
    X_REQUESTS_PER_MINUTE: count.default(20),
    SENTIMENT_SAMPLE_SIZE: integer(POSTS.least, POSTS.most).default(POSTS.least).meta({
      help: 'Posts per DAO and day, 10 to 1000. For the 93 DAOs with an account, 10 posts cost up to $4.65 a day, 100 posts $46.50.',
    }),
    X_POST_FIELDS_PARAMETER: z.enum(['tweet.fields', 'post.fields']).default('tweet.fields').meta({
      help: "X's name of the parameter for requested post fields: tweet.fields or post.fields.",
    }),
  },
  toConfig: (s, limits) => ({
    x: {
      ...limits,
      baseUrl: s.X_BASE_URL,
      requestsPerMinute: s.X_REQUESTS_PER_MINUTE,
      bearerToken: s.X_BEARER_TOKEN,
      postFieldsParameter: s.X_POST_FIELDS_PARAMETER,
      postsPerDao: s.SENTIMENT_SAMPLE_SIZE,
    },
  }),
  // Posts are billed, and a check needs no more.
  check: { x: { postsPerDao: POSTS.least } },
  cost: '$0.010 a user, $0.005 a post',
  data: [
    {
      data: 'followers, sentiment',
      key: 'X_BEARER_TOKEN',
      withoutKey: 'none; with it, counts cost $0.01 a DAO and day',
    },
  ],
  days: [
    {
      day: 'of 93 DAOs with an account: $0.93 for followers, $0.01 each, and up to $4.65 for ten posts of each, $0.005 a post',
      plan: 'no free plan. `SENTIMENT_SAMPLE_SIZE=100` makes the posts up to $46.50. Without credits, or at the spending limit, both datasets are `failed` with that reason, and X is tried a few times a day at most',
    },
  ],
})
