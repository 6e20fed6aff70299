import { describe, expect, it } from 'vitest'
import { twitterSentiment } from '../../shared/datasets/twitter-sentiment.ts'
import { LEXICON, toWeight } from '../../workers/sentiment/lexicon.ts'
import { stripNames, toMood, toScore } from '../../workers/sentiment/mood.ts'

describe('the mood of a text', () => {
  it.each([
    ['positive', 'Really bullish on @ens_dao, great governance 🚀'],
    ['positive', 'Not bad at all'],
    ['positive', 'Fees were high, but the new release is amazing'],
    ['positive', '$UNI to the moon'],
    ['negative', 'We got rekt, rug pull again'],
    ['negative', 'The hack drained the treasury'],
    ['negative', "I don't trust this team"],
    ['negative', 'Great team, but the token is a scam'],
    ['negative', 'The price keeps going down 📉'],
    ['neutral', 'Proposal 42 is on the forum'],
    ['neutral', ''],
  ])('is %s in "%s"', (mood, text) => {
    expect(toMood(text)).toBe(mood)
  })

  it('does not come from links, handles and cashtags', () => {
    expect(stripNames('see https://scam.example/rug, @great_dao and $LOVE now').trim()).toMatch(/^see\s+and\s+now$/)
    expect(toScore('@great_dao $LOVE https://scam.example/rug')).toBe(0)
    expect(stripNames('me@mail.example costs $5')).toBe('me@mail.example costs $5')
  })

  it('is turned by a negation within its sentence only', () => {
    expect(toScore('not good')).toBeLessThan(0)
    expect(toScore('It is not. Good times')).toBeGreaterThan(toScore('It is not good times'))
    expect(toScore("isn't secure")).toBe(toScore('isn’t secure'))
  })

  it('grows with emphasis', () => {
    expect(toScore('a very good day')).toBeGreaterThan(toScore('a rather good day'))
    expect(toScore('a slightly good day')).toBeLessThan(toScore('a rather good day'))
  })

  it('knows its own words before the general ones, and nothing of built-in names', () => {
    expect(toWeight('rug-pull')).toBe(-3)
    expect(toWeight('constructor')).toBeUndefined()
    expect(toWeight('toString')).toBeUndefined()
  })

  it('is stored with the lexicon, and only where there were posts', () => {
    const judged = { positive_share: 0.25, negative_share: 0.25, unknown_posts: 0, model: 'test-1', lexicon: LEXICON }
    const row = { dao: 1, observed_at: '2024-05-06T00:00:00.000Z', ...judged }
    const counts = { positive_posts: 0, neutral_posts: 0, negative_posts: 0 }
    expect(twitterSentiment.row.safeParse({ ...row, ...counts, neutral_posts: 1 }).success).toBe(true)
    expect(twitterSentiment.row.safeParse({ ...row, ...counts }).success).toBe(false)
  })
})
