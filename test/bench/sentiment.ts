import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { loadJudge, MOODS, wordList } from '../../workers/sentiment/model.ts'
import { stripNames } from '../../workers/sentiment/mood.ts'
import { atLeast, type Benchmark, type BenchRow, type BenchTable, type Findings } from './define-benchmark.ts'
import { createRandom, type LabelledText, listTrainingTexts, readTexts, TESTS, toTextKey } from './train-sentiment.ts'

/**
 * How well posts are judged: the model with its shipped weights, the word list, and packages where they are installed;
 * BENCH_MODULES names a folder that has them, if not this one. No text of these files is in the training.
 */
export const sentiment: Benchmark = {
  name: 'sentiment',
  about: 'How often the mood of a labelled post is judged right. docs/sentiment.md explains the figures.',
  run: async ({ dataDir, quick }) => {
    const file = join(dataDir, `sentiment-${TESTS[0]}.tsv.br`)
    return existsSync(file) ? measureAll(dataDir, quick ? 20 : 500) : { skipped: `there is no ${file}` }
  },
}

/** The place in `MOODS` that a judge gives a text, and whether it is rather positive than negative; probabilities of a model. */
interface Verdict {
  readonly mood: number
  readonly isPositive: boolean
  readonly probabilities?: readonly number[]
}
type Judge = (text: string) => Verdict

const NEUTRAL = 1
const toMoodOf = (score: number, least: number) => (score >= least ? 2 : score <= -least ? 0 : NEUTRAL)
const load = createRequire(process.env.BENCH_MODULES ? join(process.env.BENCH_MODULES, 'x.js') : import.meta.url)

/** The judges of packages, with the thresholds of their documentation. */
const PACKAGES: Readonly<Record<string, () => Judge>> = {
  'vader-sentiment 1.1.3': () => {
    const { SentimentIntensityAnalyzer } = load('vader-sentiment')
    return (text) => {
      const { compound } = SentimentIntensityAnalyzer.polarity_scores(stripNames(text))
      return { mood: toMoodOf(compound, 0.05), isPositive: compound > 0 }
    }
  },
  'wink-sentiment 5.0.2': () => {
    const analyse = load('wink-sentiment')
    return (text) => {
      const { score } = analyse(stripNames(text))
      return { mood: toMoodOf(score, 1), isPositive: score > 0 }
    }
  },
}

function openJudges(): { judges: Map<string, Judge>; absent: string[] } {
  const judges = new Map<string, Judge>()
  for (const judge of [loadJudge(), wordList])
    judges.set(judge.version, (text) => {
      const { mood, probabilities } = judge.judge(text)
      const isPositive = probabilities[2] > probabilities[0]
      return { mood: MOODS.indexOf(mood), isPositive, ...(judge === wordList ? {} : { probabilities }) }
    })
  const absent: string[] = []
  for (const [name, open] of Object.entries(PACKAGES)) {
    try {
      judges.set(name, open())
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'MODULE_NOT_FOUND')) throw error
      absent.push(name)
    }
  }
  return { judges, absent }
}

type Judged = Verdict & { readonly label: number }

/** Rows are labels, columns are judgements. */
function toConfusion(judged: readonly Judged[]): number[][] {
  const confusion = MOODS.map(() => MOODS.map(() => 0))
  for (const { label, mood } of judged) {
    const row = confusion[label]
    if (row) row[mood] = (row[mood] ?? 0) + 1
  }
  return confusion
}

const sumOf = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0)
const mean = (values: readonly number[]) => sumOf(values) / values.length

/** Means over the labels that occur. */
function measure(judged: readonly Judged[]) {
  const confusion = toConfusion(judged)
  const labels = [0, 1, 2].filter((label) => sumOf(confusion[label] ?? []) > 0)
  const right = (label: number) => confusion[label]?.[label] ?? 0
  const recall = (label: number) => right(label) / sumOf(confusion[label] ?? [])
  const f1 = (label: number) =>
    (2 * right(label)) / (sumOf(confusion[label] ?? []) + sumOf(confusion.map((row) => row[label] ?? 0)))
  return {
    macroRecall: mean(labels.map(recall)),
    macroF1: mean(labels.map(f1)),
    accuracy: sumOf(labels.map(right)) / judged.length,
    sign: mean(
      judged.filter(({ label }) => label !== NEUTRAL).map((one) => (one.isPositive === one.label > 1 ? 1 : 0)),
    ),
  }
}

/** The middle 95 % of the macro recall of samples with replacement. */
function toInterval(judged: readonly Judged[], samples: number): [number, number] {
  const random = createRandom(1)
  const draw = () => judged[Math.floor(random() * judged.length)] as Judged
  const recalls = Array.from({ length: samples }, () => measure(judged.map(draw)).macroRecall).sort((a, b) => a - b)
  const at = (share: number) => recalls[Math.min(samples - 1, Math.floor(share * samples))] as number
  return [at(0.025), at(0.975)]
}

const BINS = 10

/** The mean distance between the probability of the most probable mood and how often it is right, over bins of probability. */
function toCalibrationError(judged: readonly Judged[]): number {
  const bins = Array.from({ length: BINS }, () => ({ sum: 0, right: 0 }))
  for (const { probabilities = [], label } of judged) {
    const most = Math.max(...probabilities)
    const bin = bins[Math.min(BINS - 1, Math.floor(most * BINS))]
    if (bin === undefined) continue
    bin.sum += most
    if (probabilities.indexOf(most) === label) bin.right += 1
  }
  return sumOf(bins.map(({ sum, right }) => Math.abs(sum - right))) / judged.length
}

interface TestSet {
  readonly name: string
  readonly texts: readonly LabelledText[]
}

function readTests(dataDir: string): TestSet[] {
  return TESTS.flatMap((name) => {
    const all = readTexts(join(dataDir, `sentiment-${name}.tsv.br`))
    const languages = [...new Set(all.map(({ language }) => language))]
    const title = name.replace('/test', '')
    return languages.map((language) => ({
      name: languages.length === 1 ? title : `${title} ${language}`,
      texts: all.filter((text) => text.language === language),
    }))
  })
}

const show = (value: number) => (Number.isNaN(value) ? '-' : value.toFixed(3))

function measureAll(dataDir: string, samples: number): Findings {
  const checkouts = process.env.BENCH_CHECKOUTS || '..'
  const trained = new Set(listTrainingTexts(dataDir, checkouts).map(({ text }) => toTextKey(text)))
  const tests = readTests(dataDir)
  const shared = tests
    .flatMap(({ texts }) => texts)
    .filter(({ text }) => trained.has(toTextKey(text)) && toTextKey(text))
  const { judges, absent } = openJudges()
  const [model = ''] = judges.keys()
  const quality: string[][] = []
  const calibration: string[][] = []
  const confusions: string[][] = []
  const recalls = new Map<string, ReturnType<typeof measure>>()
  for (const { name, texts } of tests) {
    for (const [judge, judgeText] of judges) {
      const judged = texts.map(({ label, text }) => ({ label, ...judgeText(text) }))
      const found = measure(judged)
      const interval = toInterval(judged, samples).map(show).join(' to ')
      const { macroRecall, macroF1, accuracy, sign } = found
      quality.push([name, judge, show(macroRecall), interval, ...[macroF1, accuracy, sign].map(show)])
      if (judge !== model) continue
      recalls.set(name, found)
      confusions.push([name, ...toConfusion(judged).map((row) => row.join(' / '))])
      const means = [0, 1, 2].map((c) => mean(judged.map(({ probabilities }) => probabilities?.[c] ?? 0)))
      const labels = [0, 1, 2].map((c) => texts.filter(({ label }) => label === c).length / texts.length)
      // A set without neutral texts says nothing about probabilities of three moods.
      const error = labels[NEUTRAL] === 0 ? Number.NaN : toCalibrationError(judged)
      calibration.push([name, show(error), means.map(show).join(' / '), labels.map(show).join(' / ')])
    }
  }
  const of = (name: string) => recalls.get(name) ?? { macroRecall: 0, sign: 0 }
  const multilingual = [...recalls].flatMap(([name, found]) =>
    name.startsWith('tweets-umsab') ? [found.macroRecall] : [],
  )
  const row = (what: string, value: number, unit: string, least: number, reason?: string): BenchRow => ({
    ...{ what, a: { name: model, value, unit }, target: atLeast(least, unit === '' ? '' : ` ${unit}`) },
    ...(reason === undefined ? {} : { reason }),
  })
  const order = 'negative / neutral / positive'
  const tables: BenchTable[] = [
    {
      title: 'Quality on texts that were not trained on',
      head: ['texts', 'judge', 'macro recall', '95 %', 'macro F1', 'accuracy', 'sign right'],
      body: quality,
    },
    {
      title: `Calibration of ${model}`,
      head: ['texts', 'calibration error', `mean probability: ${order}`, `labels: ${order}`],
      body: calibration,
    },
    {
      title: `Judgements of ${model} by label, each ${order}`,
      head: ['texts', 'labelled negative', 'labelled neutral', 'labelled positive'],
      body: confusions,
    },
  ]
  return {
    rows: [
      row('macro recall, TweetEval', of('tweets-semeval2017-4a').macroRecall, '', 0.655),
      row('sign right, stock tweets', of('tweets-surge-stock').sign, '', 0.82),
      row(
        'macro recall, mean of eight languages',
        mean(multilingual),
        '',
        0.58,
        'no licence allows training on six of the languages',
      ),
      row('speed of one processor', measureSpeed(judges.get(model) as Judge, tests[0]?.texts ?? []), 'posts/s', 20_000),
    ],
    tables,
    notes: [
      `${sumOf(tests.map(({ texts }) => texts.length))} texts, ${shared.length} of them also among the ${trained.size} texts of training and validation.`,
      'Sign right: of the texts that are not neutral, how many are rather positive or rather negative as labelled.',
      ...(absent.length === 0 ? [] : [`Not installed: ${absent.join(', ')}.`]),
    ],
  }
}

const SPEED_ROUNDS = 6

/** Texts in a second of processor time: the best round, because other programs slow the memory. */
function measureSpeed(judge: Judge, texts: readonly LabelledText[]): number {
  const rates = Array.from({ length: SPEED_ROUNDS }, () => {
    const before = process.cpuUsage()
    for (const { text } of texts) judge(text)
    const { user, system } = process.cpuUsage(before)
    return texts.length / ((user + system) / 1e6)
  })
  return Math.max(...rates)
}
