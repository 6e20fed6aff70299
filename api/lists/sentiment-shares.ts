import { z } from 'zod'

/** The members of an object of shares. */
export const shareValues = {
  positive: z.number().describe('Mean probability of the posts to be positive, from 0 to 1.'),
  neutral: z.number().describe('Mean probability of the posts to be neutral, from 0 to 1.'),
  negative: z.number().describe('Mean probability of the posts to be negative, from 0 to 1.'),
}

/** How the posts of a sample were judged: the columns in `SAMPLE`. */
export const sampleValues = {
  posts: z.int().describe('How many posts were judged.'),
  unknownPosts: z
    .int()
    .nullable()
    .describe('How many of the posts have no known word and count as neutral; null where that was not counted.'),
  model: z
    .string()
    .describe('Version of the model that judged the posts. Values of different versions are not comparable.'),
}

/** The values of a row in the order of `sampleValues`. */
export const SAMPLE = 'positive_posts + neutral_posts + negative_posts AS posts, unknown_posts, model'

/** Finer than one post of the largest sample. */
const DECIMALS = 4

const POSITIVE = `round(positive_share, ${DECIMALS})`
// The remainder of rounding belongs to the neutral share; if that is smaller than a decimal, to the negative one.
const IS_WITHOUT_NEUTRAL = `(1 - positive_share - negative_share < 1e-${DECIMALS})`
const NEGATIVE = `if(${IS_WITHOUT_NEUTRAL}, round(1 - ${POSITIVE}, ${DECIMALS}), round(negative_share, ${DECIMALS}))`
const NEUTRAL = `if(${IS_WITHOUT_NEUTRAL}, 0., round(1 - ${POSITIVE} - ${NEGATIVE}, ${DECIMALS}))`

/** The shares of a row in the order of `shareValues`: decimals that sum to exactly 1 (docs/contract.md, section 4). */
export const SHARES = `${POSITIVE}, ${NEUTRAL}, ${NEGATIVE}`
