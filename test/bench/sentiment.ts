import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { LEXICON } from '../../workers/sentiment/lexicon.ts'
import { stripNames, toMood, toScore } from '../../workers/sentiment/mood.ts'
import type { Benchmark, Findings } from './define-benchmark.ts'

/**
 * Measures the classification of posts. The collection's labelled comments are split by their position in the file:
 * every second one, from the first on, is for tuning words and thresholds; the others are measured. The collection has
 * no neutral comments, so a comment classified as neutral counts as wrong. Two measurements:
 * - with neutral: the classification as served; for alternatives, thresholds of equal size on both sides of zero;
 * - forced: one threshold, set by tuning, and no neutral class.
 * Alternatives are measured if they are installed; BENCH_MODULES names another folder with them.
 */
export const sentiment: Benchmark = {
  name: 'sentiment',
  about: 'Share of labelled comments with the right sentiment, without the comments for tuning.',
  run: async ({ dataDir }) => {
    const file = join(dataDir, 'sentiment-surge-crypto/sentiment.csv')
    return existsSync(file) ? measureAll(readComments(file)) : { skipped: `there is no ${file}` }
  },
}

type Score = (text: string) => number

interface Judged {
  readonly label: number
  readonly score: number
}

const load = createRequire(process.env.BENCH_MODULES ? join(process.env.BENCH_MODULES, 'x.js') : import.meta.url)

/** The scores of a package; the shapes are from its documentation. */
const ALTERNATIVES: Readonly<Record<string, () => Score>> = {
  'sentiment 5.0.2': () => {
    const analyser = new (load('sentiment'))()
    return (text) => analyser.analyze(text).comparative
  },
  'vader-sentiment 1.1.3': () => {
    const { SentimentIntensityAnalyzer } = load('vader-sentiment')
    return (text) => SentimentIntensityAnalyzer.polarity_scores(text).compound
  },
  'wink-sentiment 5.0.2': () => {
    const analyse = load('wink-sentiment')
    return (text) => analyse(text).normalizedScore
  },
}

interface Comment {
  readonly text: string
  readonly label: number
}

function readComments(file: string): Comment[] {
  const cells = [...readFileSync(file, 'utf8').matchAll(/(?:"((?:[^"]|"")*)"|([^,\r\n]*))(,|\r?\n|$)/g)]
  const rows: string[][] = [[]]
  for (const [whole, quoted, plain, end] of cells) {
    if (whole === '') break
    rows.at(-1)?.push(quoted?.replaceAll('""', '"') ?? plain ?? '')
    if (end !== ',') rows.push([])
  }
  return rows
    .slice(1)
    .filter((row) => row.length >= 2)
    .map(([text = '', label]) => ({ text, label: label?.trim() === 'Positive' ? 1 : -1 }))
}

/** Share of correct classifications, and the mean of the F1 of both labels. */
function measure(judged: readonly Judged[], negative: number, positive: number) {
  const moods = judged.map(({ label, score }) => ({ label, mood: score > positive ? 1 : score < negative ? -1 : 0 }))
  const count = (is: (one: { label: number; mood: number }) => boolean) => moods.filter(is).length
  const f1 = (of: number) => {
    const right = count(({ label, mood }) => label === of && mood === of)
    const wrong = count(({ label, mood }) => label !== mood && (label === of || mood === of))
    return (2 * right) / (2 * right + wrong || 1)
  }
  const accuracy = count(({ label, mood }) => label === mood) / moods.length
  return { accuracy, macroF1: (f1(1) + f1(-1)) / 2, neutral: count(({ mood }) => mood === 0) / moods.length }
}

const GRID = Array.from({ length: 61 }, (_, index) => (index - 30) / 100)
type Thresholds = readonly [negative: number, positive: number]

function tune(judged: readonly Judged[], candidates: readonly Thresholds[]): Thresholds {
  const rated = candidates.map((pair) => ({ pair, ...measure(judged, ...pair) }))
  return rated.reduce((best, one) => (one.accuracy > best.accuracy ? one : best)).pair
}

const judge = (comments: readonly Comment[], score: Score, odd: number) =>
  comments.flatMap(({ text, label }, index) => (index % 2 === odd ? [{ label, score: score(text) }] : []))

/** The table's line of one classifier; `served` is the classification as served, including thresholds. */
function toLine(comments: readonly Comment[], name: string, score: Score, served?: Score): string[] {
  const [tuning, measured] = [judge(comments, score, 0), judge(comments, score, 1)]
  const symmetric = tune(
    tuning,
    GRID.filter((at) => at >= 0).map((at) => [-at, at] as const),
  )
  const forced = tune(
    tuning,
    GRID.map((at) => [at, at] as const),
  )
  const first = served ? measure(judge(comments, served, 1), 0, 0) : measure(measured, ...symmetric)
  const second = measure(measured, ...forced)
  const numbers = [first.accuracy, first.macroF1, first.neutral, second.accuracy, second.macroF1]
  return [name, ...numbers.map((value) => value.toFixed(3))]
}

function measureAll(comments: readonly Comment[]): Findings {
  const MOODS = { positive: 1, neutral: 0, negative: -1 } as const
  const body = [toLine(comments, LEXICON, toScore, (text) => MOODS[toMood(text)])]
  const absent: string[] = []
  for (const [name, open] of Object.entries(ALTERNATIVES)) {
    try {
      const score = open()
      body.push(toLine(comments, name, (text) => score(stripNames(text))))
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'MODULE_NOT_FOUND')) throw error
      absent.push(name)
    }
  }
  const title = `${Math.floor(comments.length / 2)} of ${comments.length} comments`
  return {
    rows: [],
    tables: [{ title, head: ['', 'accuracy', 'macro-F1', 'neutral', 'forced: accuracy', 'forced: macro-F1'], body }],
    ...(absent.length === 0 ? {} : { notes: [`Not installed: ${absent.join(', ')}.`] }),
  }
}
