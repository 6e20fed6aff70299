import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { BUCKET_BITS, createFeatureReader, DENSE } from './features.ts'
import { LEXICON } from './lexicon.ts'
import { type Mood, toMood, toScore } from './mood.ts'

/** The order of the classes in every weight and probability. */
export const MOODS = ['negative', 'neutral', 'positive'] as const satisfies readonly Mood[]

/** Effects of a word of the table on each class, plain and within a negation. */
const EFFECTS = 6

export interface Judgement {
  /**
   * The mood with the highest score. The score favours no class, so this mood may differ from the most probable one.
   */
  readonly mood: Mood
  /** Probabilities in the order of `MOODS`, calibrated on posts with the usual share of each mood, with a sum of 1. */
  readonly probabilities: readonly [negative: number, neutral: number, positive: number]
  /** False if no word of the text is known. The text is then neutral. */
  readonly isKnown: boolean
}

export interface Judge {
  /** Stored with each classification. Classifications of different versions are not comparable. */
  readonly version: string
  judge(text: string): Judgement
}

type Triple = readonly [number, number, number]

/** The result of training, in the form of `toBytes` and `toModel`. */
export interface Weights {
  /** The version of the word list that the model was trained with. */
  readonly lexicon: string
  readonly words: readonly string[]
  /** Of each word: its valence in hundredths. */
  readonly valences: Int8Array
  /** Of each word: `EFFECTS` numbers, in units of `effectUnit`. */
  readonly effects: Int8Array
  readonly effectUnit: number
  /** Of each bucket: a number for each class, in units of `bucketUnit`. */
  readonly buckets: Int8Array
  readonly bucketUnit: number
  readonly bias: Triple
  /** Of each dense feature: a number for each class. */
  readonly dense: readonly number[]
  /** Added to the scores of the classes before the highest one is the mood. */
  readonly balance: Triple
  /** Probabilities are the softmax of `scale` times the scores, plus `shift`. */
  readonly calibration: { readonly scale: number; readonly shift: Triple }
}

/** A length, a header of that length in JSON, the numbers of all buckets and words, then the words, a line each. */
export function toBytes({ words, valences, effects, buckets, ...header }: Weights): Buffer {
  const head = Buffer.from(JSON.stringify({ ...header, words: words.length }))
  const length = Buffer.alloc(4)
  length.writeUInt32LE(head.length)
  const numbers = [buckets, valences, effects].map((part) => Buffer.from(part.buffer, part.byteOffset, part.length))
  return Buffer.concat([length, head, ...numbers, Buffer.from(words.join('\n'))])
}

function toWeights(bytes: Buffer): Weights {
  const length = bytes.readUInt32LE(0)
  const { words: count, ...header } = JSON.parse(bytes.toString('utf8', 4, 4 + length)) as Omit<Weights, 'words'> & {
    words: number
  }
  let at = 4 + length
  const take = (size: number) => {
    at += size
    return Int8Array.from(bytes.subarray(at - size, at))
  }
  const [buckets, valences, effects] = [take(3 << BUCKET_BITS), take(count), take(count * EFFECTS)]
  return { ...header, buckets, valences, effects, words: bytes.toString('utf8', at).split('\n') }
}

/**
 * Returns the judge with the weights of a file.
 * @throws Error if they were trained with another word list, which is one of the features.
 */
export function toModel(bytes: Buffer): Judge {
  const weights = toWeights(bytes)
  if (weights.lexicon !== LEXICON)
    throw new Error(
      `sentiment weights: trained with the word list ${weights.lexicon}, this is ${LEXICON}; run test/bench/train-sentiment.ts`,
    )
  const toScores = createScorer(weights)
  const { balance, calibration } = weights
  const { scale, shift } = calibration
  return {
    version: `ngrams-1-${createHash('sha256').update(bytes).digest('hex').slice(0, 8)}`,
    judge: (text) => {
      const scores = toScores(text)
      if (scores === undefined) return UNKNOWN
      const [a, b, c] = scores
      const [n, m, p] = [a + balance[0], b + balance[1], c + balance[2]]
      const mood = n > m ? (n > p ? 'negative' : 'positive') : p > m ? 'positive' : 'neutral'
      const probabilities = toSoftmax([scale * a + shift[0], scale * b + shift[1], scale * c + shift[2]])
      return { mood, probabilities, isKnown: true }
    },
  }
}

const UNKNOWN: Judgement = { mood: 'neutral', probabilities: [0, 1, 0], isKnown: false }

/** Returns the function from a text to the scores of the classes; undefined if no word of the text is known. */
export function createScorer(weights: Weights): (text: string) => [number, number, number] | undefined {
  const { words, valences, effects, effectUnit, buckets, bucketUnit, bias, dense } = weights
  const rows = new Map<string, number>()
  for (let row = 0; row < words.length; row += 1) rows.set(words[row] as string, row)
  const read = createFeatureReader({ rows, valences })
  const sum = (from: number, to: number, of: Int32Array) => {
    let [a, b, c] = [0, 0, 0]
    for (let i = from; i < to; i += 1) {
      const at = 3 * (of[i] as number)
      a += buckets[at] as number
      b += buckets[at + 1] as number
      c += buckets[at + 2] as number
    }
    const scale = bucketUnit / Math.sqrt(to - from || 1)
    return [a * scale, b * scale, c * scale] as const
  }
  return (text) => {
    const features = read(text)
    if (features.known === 0 && features.dense[3] === 0) return undefined
    const ofWords = sum(0, features.words, features.buckets)
    const ofGrams = sum(features.words, features.count, features.buckets)
    let [a, b, c] = [0, 0, 0]
    for (let i = 0; i < features.known; i += 1) {
      const at = 3 * (features.rows[i] as number)
      a += effects[at] as number
      b += effects[at + 1] as number
      c += effects[at + 2] as number
    }
    const scale = effectUnit / Math.sqrt(features.tokens + 2)
    const scores: [number, number, number] = [
      bias[0] + ofWords[0] + ofGrams[0] + a * scale,
      bias[1] + ofWords[1] + ofGrams[1] + b * scale,
      bias[2] + ofWords[2] + ofGrams[2] + c * scale,
    ]
    for (let d = 0; d < DENSE; d += 1) {
      const value = features.dense[d] as number
      if (value === 0) continue
      scores[0] += value * (dense[3 * d] as number)
      scores[1] += value * (dense[3 * d + 1] as number)
      scores[2] += value * (dense[3 * d + 2] as number)
    }
    return scores
  }
}

export function toSoftmax([a, b, c]: Triple): [number, number, number] {
  const most = Math.max(a, b, c)
  const [x, y, z] = [Math.exp(a - most), Math.exp(b - most), Math.exp(c - most)]
  const sum = x + y + z
  return [x / sum, y / sum, z / sum]
}

const CERTAIN = { negative: [1, 0, 0], neutral: [0, 1, 0], positive: [0, 0, 1] } as const

/** The word list alone, for English. Its probabilities are 0 and 1. */
export const wordList: Judge = {
  version: LEXICON,
  judge: (text) => {
    const mood = toMood(text)
    return { mood, probabilities: CERTAIN[mood], isKnown: toScore(text) !== 0 }
  },
}

export const WEIGHTS_FILE = new URL('./weights.bin', import.meta.url)

let loaded: Judge | undefined

/** Returns the model, or the word list if there are no weights. Reads the weights at the first call only. */
export function loadJudge(): Judge {
  loaded ??= existsSync(WEIGHTS_FILE) ? toModel(readFileSync(WEIGHTS_FILE)) : wordList
  return loaded
}
