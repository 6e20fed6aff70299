import { readFileSync, statSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { createFeatureReader, toTokens } from '../../workers/sentiment/features.ts'
import { loadJudge, toBytes, toModel, WEIGHTS_FILE, wordList } from '../../workers/sentiment/model.ts'
import { type LabelledText, toTextKey, train } from '../bench/train-sentiment.ts'

const PLAIN = [
  'the vote starts today',
  'the team writes a report',
  'a forum post about the vote',
  'the report is on the forum',
]
const LIKED = ['zorble vote for the team', 'the report is zorble', 'such a zorble forum', 'a zorble post today']
const HATED = ['quandle vote for the team', 'the report is quandle', 'such a quandle forum', 'a quandle post today']

const label = (texts: readonly string[], mood: number): LabelledText[] =>
  texts.flatMap((text) => Array.from({ length: 5 }, () => ({ label: mood, language: 'en', text })))
const texts = [...label(HATED, 0), ...label(PLAIN, 1), ...label(LIKED, 2)]

const trainSmall = (seed = 1) =>
  train({
    groups: [{ texts, weight: 1 }],
    validation: [texts],
    vectors: new Map([['vote', Float32Array.of(1, 0)]]),
    valences: new Map([['splendid', 0.8]]),
    seed,
  })

describe('a model trained on a few texts', () => {
  const bytes = toBytes(trainSmall())
  const { judge, version } = toModel(bytes)

  it('judges other texts by the words that it learnt', () => {
    expect(judge('what a zorble vote').mood).toBe('positive')
    expect(judge('what a quandle vote').mood).toBe('negative')
    expect(judge('the vote is about a report').mood).toBe('neutral')
  })

  it('gives probabilities that sum to 1 and are ordered as the words are', () => {
    const [negative, neutral, positive] = judge('zorble').probabilities
    expect(negative + neutral + positive).toBeCloseTo(1, 12)
    expect(positive).toBeGreaterThan(negative)
  })

  it('judges a text without any known word neutral and says so', () => {
    expect(judge('完全に 未知')).toEqual({ mood: 'neutral', probabilities: [0, 1, 0], isKnown: false })
    expect(judge('')).toMatchObject({ mood: 'neutral', isKnown: false })
    expect(judge('zorble')).toMatchObject({ isKnown: true })
  })

  it('has the same bytes when it is trained again, and others with another seed', () => {
    expect(toBytes(trainSmall()).equals(bytes)).toBe(true)
    expect(toModel(toBytes(trainSmall(2))).version).not.toBe(version)
  })

  it('is refused if it was trained with another word list', () => {
    expect(() => toModel(toBytes({ ...trainSmall(), lexicon: 'other-1' }))).toThrow(/other-1.*train-sentiment/)
  })
})

describe('features', () => {
  it('are the tokens without handles, with links, cashtags and numbers made alike', () => {
    expect(toTokens('@ens_dao $ENS up 12% sooooo GOOD!! https://x.example/y')).toEqual([
      '$',
      'up',
      '00',
      '%',
      'soo',
      'good',
      '!!',
      '<u>',
    ])
  })

  it('mark the three words after a negation until the sentence ends', () => {
    const rows = new Map(['one', 'two', 'three', 'four'].map((word, row) => [word, row]))
    const read = createFeatureReader({ rows, valences: new Int8Array(4) })
    const negated = (text: string) => {
      const { rows: existing, known: count } = read(text)
      return [...existing.slice(0, count)].map((row) => row % 2 === 1)
    }
    expect(negated("don't one two three four")).toEqual([true, true, true, false])
    expect(negated('not one! two')).toEqual([true, false])
  })

  it('fit into their buffers for the longest text', () => {
    const read = createFeatureReader({ rows: new Map([['a', 0]]), valences: new Int8Array(1) })
    const words = Array.from({ length: 30_000 }, (_, n) =>
      String.fromCharCode(0x4e00 + (n % 20_000), 0x4e00 + ((7 * n) % 20_000)),
    )
    const { count, buckets, known: existing, rows } = read(`a ${words.join('')}`)
    expect(count).toBeLessThanOrEqual(buckets.length)
    expect(existing).toBeLessThanOrEqual(rows.length)
    expect(read(words.join(' ')).count).toBeLessThanOrEqual(buckets.length)
  })
})

describe('the shipped weights', () => {
  it('are at most 2 MB and were trained with the word list of this version', () => {
    expect(statSync(WEIGHTS_FILE).size).toBeLessThanOrEqual(2_000_000)
    expect(toModel(readFileSync(WEIGHTS_FILE)).version).toBe(loadJudge().version)
    expect(loadJudge()).not.toBe(wordList)
  })

  it.each([
    ['positive', 'Really bullish on @ens_dao, great governance 🚀'],
    ['positive', 'Fees were high, but the new release is amazing'],
    ['negative', 'We got rekt, rug pull again'],
    ['negative', "I don't trust this team, the treasury is drained"],
    ['negative', 'Das ist schlecht, ich bin sehr enttäuscht'],
    ['positive', 'Excelente trabajo, muchas gracias, me encanta'],
    ['neutral', 'Proposal 42 is on the forum'],
  ])('judge as %s: %s', (mood, text) => {
    expect(loadJudge().judge(text).mood).toBe(mood)
  })
})

describe('the word list without weights', () => {
  it('is certain of its mood, and knows no text without a mood word', () => {
    expect(wordList.judge('great')).toEqual({ mood: 'positive', probabilities: [0, 0, 1], isKnown: true })
    expect(wordList.judge('the forum')).toEqual({ mood: 'neutral', probabilities: [0, 1, 0], isKnown: false })
  })
})

describe('the key of a text', () => {
  it('is the same for copies that differ in links, handles, case and punctuation', () => {
    expect(toTextKey('@a Great NEWS! https://t.co/1')).toBe(toTextKey('great news'))
    expect(toTextKey('great news')).not.toBe(toTextKey('great new'))
  })
})
