import { z } from 'zod'

/** The members of an object of shares. */
export const shareValues = {
  positive: z.number().describe('Share of positive posts, from 0 to 1.'),
  neutral: z.number().describe('Share of neutral posts, from 0 to 1.'),
  negative: z.number().describe('Share of negative posts, from 0 to 1.'),
}

/** Finer than one post of the largest sample, so that no share of a post is rounded away. */
const DECIMALS = 4

const POSTS = '(positive_posts + neutral_posts + negative_posts)'
const POSITIVE = `round(positive_posts / ${POSTS}, ${DECIMALS})`
// What rounding leaves over belongs to the neutral ones; where there are none, to the negative ones.
const NEGATIVE = `if(neutral_posts = 0, round(1 - ${POSITIVE}, ${DECIMALS}), round(negative_posts / ${POSTS}, ${DECIMALS}))`
const NEUTRAL = `if(neutral_posts = 0, 0., round(1 - ${POSITIVE} - ${NEGATIVE}, ${DECIMALS}))`

/** The shares of a row's posts in the order of `shareValues`: decimals that sum to exactly 1 (docs/contract.md, section 4). */
export const SHARES = `${POSITIVE}, ${NEUTRAL}, ${NEGATIVE}`
