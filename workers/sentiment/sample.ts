import { z } from 'zod'
import type { Dao } from '../../shared/registry/entities.ts'
import type { Allowance } from '../job/state.ts'
import { type JobState, recall } from '../job/state.ts'
import type { PostsSource } from '../providers/x/posts.ts'
import { LEXICON } from './lexicon.ts'
import { type Judge, loadJudge } from './model.ts'

const count = z.int().nonnegative()
const sample = z.object({
  slot: z.number(),
  lexicon: z.string(),
  model: z.string(),
  /** How many posts were read, in whatever language. */
  posts: count,
  positive: count,
  neutral: count,
  negative: count,
  /** Of the neutral posts, those without any known word. */
  unknown: count,
  /** Sums of the posts' probabilities. */
  positiveSum: z.number(),
  negativeSum: z.number(),
  /** Where the next page begins; null when all were read. */
  next: z.string().nullable(),
})

/** The posts about a DAO that were read for a slot, judged: what is remembered of them, for they are not kept. */
export type Sample = z.infer<typeof sample>

/** So many finished samples are on their way to the store at most: a run that dies then buys no more than these again. */
const MOST_UNREMEMBERED = 8

/** The samples of a slot. */
export interface Samples {
  /**
   * Reads the posts about a DAO to the end of its sample, from where an earlier run stopped.
   * @returns undefined when the allowance is used up before the end.
   */
  read(dao: Dao): Promise<Sample | undefined>
  /** Resolves when every sample that was finished is remembered. */
  remembered(): Promise<void>
  /** Number of posts about a DAO that these reads could not parse. */
  unreadable(dao: Dao): number
}

/**
 * The samples of a slot, with what earlier runs read of them. Each page is remembered before the next about the same DAO is
 * asked for, because it was paid for. A finished sample is remembered, while the next ones are read, until another slot's
 * begins, so that who asks for the slot again buys nothing.
 */
export async function openSamples(
  source: PostsSource,
  daos: readonly Dao[],
  slot: number,
  { state, allowance, signal }: { state: JobState; allowance: Pick<Allowance, 'take'>; signal: AbortSignal },
): Promise<Samples> {
  const judge = loadJudge()
  const recalled = new Map(
    await Promise.all(daos.map(async (dao) => [dao.id, await recallSample(state, dao, slot, judge.version)] as const)),
  )
  const isFinished = ({ next, posts }: Sample) => next === null || posts >= source.sampleSize
  const remembering = new Set<Promise<void>>()
  const unreadable = new Map<string, number>()
  let failure: unknown
  async function remember(saving: Promise<void>): Promise<void> {
    try {
      await saving
    } catch (error) {
      failure ??= error
    }
  }
  return {
    read: async (dao) => {
      let read = recalled.get(dao.id)
      while (read === undefined || !isFinished(read)) {
        while (remembering.size >= MOST_UNREMEMBERED) await Promise.race(remembering)
        // Nothing more is bought that could not be remembered.
        if (failure !== undefined) throw failure
        if (!allowance.take()) return undefined
        const from = { next: read?.next ?? undefined, read: read?.posts ?? 0 }
        const page = await source.fetchPage(dao, slot, from, signal)
        unreadable.set(dao.id, (unreadable.get(dao.id) ?? 0) + page.unreadable)
        read = add(read ?? { slot, lexicon: LEXICON, model: judge.version, ...EMPTY }, page, judge)
        // Nothing was paid for no post, and there may be some when it is asked again.
        if (read.posts === 0) break
        const saving = state.save(dao.id, JSON.stringify(read))
        if (isFinished(read)) {
          const remembered = remember(saving).finally(() => remembering.delete(remembered))
          remembering.add(remembered)
        } else await saving
      }
      return read
    },
    unreadable: ({ id }) => unreadable.get(id) ?? 0,
    remembered: async () => {
      await Promise.all(remembering)
      if (failure !== undefined) throw failure
    },
  }
}

const EMPTY = {
  ...{ posts: 0, positive: 0, neutral: 0, negative: 0, unknown: 0, positiveSum: 0, negativeSum: 0, next: null },
} as const

function add(
  before: Sample,
  { texts, posts, next }: Awaited<ReturnType<PostsSource['fetchPage']>>,
  { judge }: Judge,
): Sample {
  const after = { ...before, posts: before.posts + posts, next: next ?? null }
  for (const text of texts) {
    const { mood, probabilities, isKnown } = judge(text)
    after[mood] += 1
    after.negativeSum += probabilities[0]
    after.positiveSum += probabilities[2]
    if (!isKnown) after.unknown += 1
  }
  return after
}

/** Counts of another slot are of other posts, and those of another model or lexicon are not comparable with what is added. */
async function recallSample(state: JobState, dao: Dao, slot: number, model: string): Promise<Sample | undefined> {
  const stored = await recall(state, dao.id, sample)
  return stored?.slot === slot && stored.lexicon === LEXICON && stored.model === model ? stored : undefined
}
