import { NEGATIONS } from './lexicon.ts'
import { NAMES, toScore } from './mood.ts'

/** Words with a vector or a valence before training: their rows, and valences in hundredths, from -100 to 100. */
export interface WordTable {
  readonly rows: ReadonlyMap<string, number>
  readonly valences: Int8Array
}

/** The features of a text. The reader overwrites them with each text that it reads. */
export interface Features {
  /** Buckets of words, word pairs and negated words, then those of character n-grams. No bucket occurs twice in a kind. */
  readonly buckets: Int32Array
  /** Number of buckets of words, and of all buckets. */
  words: number
  count: number
  /** Words of the table: twice the row, plus 1 within a negation. */
  readonly rows: Int32Array
  known: number
  tokens: number
  /** See `DENSE`. */
  readonly dense: Float64Array
}

/** Log2 of the number of buckets. */
export const BUCKET_BITS = 17

/**
 * Positive, negative and total valence; score of the word list, its size, whether it is positive, whether it is negative;
 * exclamation marks, question mark, words in capitals, repeated letters, length.
 */
export const DENSE = 12

/** Characters of a text that are read: few posts are longer. */
const MOST_CHARACTERS = 2000
/** Words after a negation that are negated. */
const NEGATION_REACH = 3
const NO_NEGATION = 99
const SHORTEST_GRAM = 3
const LONGEST_GRAM = 5

const LINK = /https?:\/\/\S*|www\.\S+/g
const TOKEN =
  /<u>|[\p{L}\p{M}\p{N}_]+(?:['’-][\p{L}\p{M}\p{N}_]+)*|[:;=8xX]['`]?[-o^]?[)([\]dDpP/\\|3*]+|<3+|\p{Extended_Pictographic}|[!?]+|\.\.+|[#$%&+~*"/-]/gu
const SENTENCE_END = /^(?:[!?]+|\.\.+|but|however)$/
const REPEATED = /(.)\1\1/
const ALL_REPEATED = /(.)\1{2,}/gu
const NUMBER = /^\d[\d.,]*$/

/** The tokens of a text in any language, in lower case. A link is one token, a handle none, and digits are zeros. */
export function toTokens(text: string): string[] {
  const plain = text
    .slice(0, MOST_CHARACTERS)
    .replace(LINK, ' <u> ')
    .replace(NAMES, (name) => (name.startsWith('$') ? ' $ ' : ' '))
    .replace(/[’‘`]/g, "'")
    .replace(/\ufe0f|\u200d/g, '')
    .toLowerCase()
  const tokens: string[] = plain.match(TOKEN) ?? []
  const hasRepeated = REPEATED.test(plain)
  for (let i = 0; i < tokens.length; i += 1) {
    const token = tokens[i] as string
    const first = token.charCodeAt(0)
    if (first >= 48 && first <= 57 && NUMBER.test(token)) tokens[i] = '0'.repeat(Math.min(token.length, 4))
    else if (hasRepeated) tokens[i] = token.replace(ALL_REPEATED, '$1$1')
  }
  return tokens
}

// FNV-1a over UTF-16 units, with a final mix to a bucket. The seed separates the kinds of features.
const PRIME = 0x01000193
const WORD = 1
const PAIR = 2
const NEGATED = 5
const GRAM = 6
const MASK = (1 << BUCKET_BITS) - 1

function toHash(text: string): number {
  let h = WORD
  for (let i = 0; i < text.length; i += 1) h = Math.imul(h ^ text.charCodeAt(i), PRIME)
  return h
}

function toBucket(hash: number): number {
  let h = hash
  h = Math.imul(h ^ (h >>> 15), 0x2c1b3c6d)
  h = Math.imul(h ^ (h >>> 12), 0x297a2d39)
  return (h ^ (h >>> 15)) & MASK
}

/** The buckets of the character n-grams of `<token>` but for the whole of it, which is the word's own feature. */
function toGrams(token: string): number[] {
  const length = token.length + 2
  const grams: number[] = []
  for (let from = 0; from + SHORTEST_GRAM <= length; from += 1) {
    const longest = Math.min(LONGEST_GRAM, length - from)
    let h = GRAM
    for (let n = 1; n <= longest; n += 1) {
      const at = from + n - 1
      const unit = at === 0 ? 60 : at === length - 1 ? 62 : token.charCodeAt(at - 1)
      h = Math.imul(h ^ unit, PRIME)
      if (n >= SHORTEST_GRAM && n < length) grams.push(toBucket(h))
    }
  }
  return grams
}

/** The features of a token that do not depend on its neighbours. */
interface Token {
  readonly kind: 'word' | 'end' | 'negation'
  readonly hash: number
  readonly bucket: number
  readonly negatedBucket: number
  readonly grams: readonly number[]
  /** Its row of the word table; -1 if it has none. */
  readonly row: number
}

function toToken(text: string, table: WordTable): Token {
  const isNegation = NEGATIONS.has(text) || text.endsWith("n't")
  const hash = toHash(text)
  return {
    kind: SENTENCE_END.test(text) ? 'end' : isNegation ? 'negation' : 'word',
    hash,
    bucket: toBucket(hash),
    negatedBucket: toBucket(Math.imul(hash ^ NEGATED, PRIME)),
    grams: toGrams(text),
    row: table.rows.get(text) ?? -1,
  }
}

/** Maximum number of cached tokens, the first ones that occur. */
const MOST_TOKENS = 20_000
/** Stamps are bytes, two a text. */
const LAST_STAMP = 254

/** Returns the function that reads the features of a text. Training and the model share it. */
export function createFeatureReader(table: WordTable): (text: string) => Features {
  const seen = new Uint8Array(1 << BUCKET_BITS)
  const remembered = new Map<string, Token>()
  let stamp = 0
  const buckets = new Int32Array(8 * MOST_CHARACTERS)
  const rows = new Int32Array(MOST_CHARACTERS)
  const dense = new Float64Array(DENSE)
  const features: Features = { buckets, words: 0, count: 0, rows, known: 0, tokens: 0, dense }

  function recall(text: string): Token {
    let token = remembered.get(text)
    if (token === undefined) {
      token = toToken(text, table)
      if (remembered.size < MOST_TOKENS) remembered.set(text, token)
    }
    return token
  }

  /** Adds a bucket unless it has this stamp, and returns how many there are then. */
  function add(bucket: number, stampOfKind: number, count: number): number {
    if (seen[bucket] === stampOfKind) return count
    seen[bucket] = stampOfKind
    buckets[count] = bucket
    return count + 1
  }

  return (text) => {
    const tokens = toTokens(text).map(recall)
    let count = 0
    let known = 0
    let positive = 0
    let negative = 0
    let since = NO_NEGATION
    if (stamp >= LAST_STAMP) {
      seen.fill(0)
      stamp = 0
    }
    stamp += 1
    for (let i = 0; i < tokens.length; i += 1) {
      const { kind, hash, bucket, negatedBucket, row } = tokens[i] as Token
      const isNegated = kind === 'word' && since < NEGATION_REACH
      count = add(bucket, stamp, count)
      const next = tokens[i + 1]
      if (next !== undefined) count = add(toBucket(Math.imul(hash ^ PAIR, PRIME) + next.hash), stamp, count)
      if (isNegated) count = add(negatedBucket, stamp, count)
      since = kind === 'end' ? NO_NEGATION : kind === 'negation' ? 0 : since + 1
      if (row < 0) continue
      rows[known] = 2 * row + (isNegated ? 1 : 0)
      known += 1
      const valence = (table.valences[row] as number) / 100
      if (valence > 0) positive += valence
      else negative -= valence
    }
    features.words = count
    // The other kind of features has a separate stamp, because a bucket may be in both.
    stamp += 1
    for (const { grams } of tokens)
      for (let i = 0; i < grams.length; i += 1) count = add(grams[i] as number, stamp, count)
    features.count = count
    features.known = known
    features.tokens = tokens.length
    const scale = 3 / Math.sqrt(tokens.length + 4)
    const score = Math.max(-3, Math.min(3, toScore(text)))
    dense[0] = positive * scale
    dense[1] = negative * scale
    dense[2] = (positive - negative) * scale
    dense[3] = score
    dense[4] = Math.abs(score)
    dense[5] = score > 0.05 ? 1 : 0
    dense[6] = score < -0.05 ? 1 : 0
    dense[7] = Math.min(3, text.match(/!/g)?.length ?? 0) / 3
    dense[8] = text.includes('?') ? 1 : 0
    dense[9] = Math.min(3, text.match(/\b[A-Z]{2,}\b/g)?.length ?? 0) / 3
    dense[10] = REPEATED.test(text) ? 1 : 0
    dense[11] = Math.min(3, text.length / 100) / 3
    return features
  }
}
