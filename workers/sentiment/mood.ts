import { EMPHASIS, NEGATIONS, PHRASE, toWeight } from './lexicon.ts'

export type Mood = 'positive' | 'neutral' | 'negative'

/**
 * Thresholds of a positive and a negative score. Both are tuned on half of a labelled collection of crypto comments
 * without neutral ones. A text without mood words stays neutral.
 */
const THRESHOLDS = { positive: 0.05, negative: -0.05 } as const

/** Number of words after a negation that count as their opposite, with less weight. */
const NEGATION_REACH = 3
const NEGATED = -0.6
/** The weight of a negation: complaints have more negations. */
const NEGATION_WEIGHT = -0.5
/** Words before a "but" count less, words after it more. */
const BEFORE_BUT = 0.5
const AFTER_BUT = 1.5

const TOKEN = /[a-z](?:[a-z'-]*[a-z])?|\p{Extended_Pictographic}|[.!?;]/gu
const SENTENCE_END = /^[.!?;]$/

/** @handles and $cashtags. */
export const NAMES = /(?<!\w)[@$][a-z_]\w*/gi

/** Removes links, @handles and $cashtags: they name the subject of a text, not its mood (docs/providers.md, section 15). */
export function stripNames(text: string): string {
  return text.replace(/https?:\/\/\S+/g, ' ').replace(NAMES, ' ')
}

/** The mood of an English text. */
export function toMood(text: string): Mood {
  const score = toScore(text)
  return score > THRESHOLDS.positive ? 'positive' : score < THRESHOLDS.negative ? 'negative' : 'neutral'
}

/**
 * The sum of the weights of a text's words, after emphasis, negation and "but", per root of its length. 0 where no word
 * has a mood.
 */
export function toScore(text: string): number {
  const plain = stripNames(text).toLowerCase().replace(/[’‘]/g, "'")
  const tokens = plain.replace(PHRASE, (phrase) => phrase.replace(/\s+/g, '-')).match(TOKEN) ?? []
  let sum = 0
  let length = 0
  let sinceNegation = Number.POSITIVE_INFINITY
  let emphasis = 1
  let turn = 1
  for (const token of tokens) {
    if (SENTENCE_END.test(token)) {
      sinceNegation = Number.POSITIVE_INFINITY
      continue
    }
    length += 1
    if (token === 'but' || token === 'however') {
      sum *= BEFORE_BUT
      turn = AFTER_BUT
      sinceNegation = Number.POSITIVE_INFINITY
    } else if (NEGATIONS.has(token) || token.endsWith("n't")) {
      sum += NEGATION_WEIGHT * turn
      sinceNegation = 0
    } else {
      sinceNegation += 1
      sum += (toWeight(token) ?? 0) * emphasis * turn * (sinceNegation <= NEGATION_REACH ? NEGATED : 1)
    }
    emphasis = EMPHASIS.get(token) ?? 1
  }
  return sum / Math.sqrt(length + 4)
}
