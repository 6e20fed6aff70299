import { z } from 'zod'
import type { Dao } from '../../shared/registry/entities.ts'
import { type Allowance, type JobState, recall } from '../job/state.ts'
import type { PostsSource } from '../providers/x/posts.ts'
import { LEXICON } from './lexicon.ts'
import { type Judge, loadJudge } from './model.ts'

const count = z.int().nonnegative()
const sample = z.object({
  slot: z.number(),
  lexicon: z.string(),
  model: z.string(),
  /** Number of posts that were read, in any language. */
  posts: count,
  positive: count,
  neutral: count,
  negative: count,
  /** Number of neutral posts without any known word. */
  unknown: count,
  /** Sums of the posts' probabilities. */
  positiveSum: z.number(),
  negativeSum: z.number(),
  /** Token of the next page; null after the last one. */
  next: z.string().nullable(),
})

/** Counts of the classified posts about a DAO for a slot. The posts themselves are not stored. */
export type Sample = z.infer<typeof sample>

/** Maximum number of finished samples that are being stored: a run that dies pays for at most these a second time. */
const MAX_PENDING_SAVES = 8

/** The samples of a slot. */
export interface Samples {
  /**
   * Reads the posts about a DAO to the end of its sample, from where an earlier run stopped.
   * @returns undefined when the allowance is used up before the end.
   */
  read(dao: Dao): Promise<Sample | undefined>
  /** Resolves when all finished samples are stored. */
  stored(): Promise<void>
  /** Number of posts about a DAO that these reads could not parse. */
  unreadable(dao: Dao): number
}

/**
 * Opens the samples of a slot, with the pages of earlier runs. Each page is billed, so its counts are stored before the next
 * page of the same DAO is requested. A finished sample stays stored until the next slot, so a repeated slot costs nothing.
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
  const pendingSaves = new Set<Promise<void>>()
  const unreadable = new Map<string, number>()
  let failure: unknown
  async function save(saving: Promise<void>): Promise<void> {
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
        while (pendingSaves.size >= MAX_PENDING_SAVES) await Promise.race(pendingSaves)
        // Does not pay for pages whose counts cannot be stored.
        if (failure !== undefined) throw failure
        if (!allowance.take()) return undefined
        const from = { next: read?.next ?? undefined, read: read?.posts ?? 0 }
        const page = await source.fetchPage(dao, slot, from, signal)
        unreadable.set(dao.id, (unreadable.get(dao.id) ?? 0) + page.unreadable)
        read = add(read ?? { slot, lexicon: LEXICON, model: judge.version, ...EMPTY }, page, judge)
        // An empty page is not billed, and a later request may find posts.
        if (read.posts === 0) break
        const saving = state.save(dao.id, JSON.stringify(read))
        if (isFinished(read)) {
          const saved = save(saving).finally(() => pendingSaves.delete(saved))
          pendingSaves.add(saved)
        } else await saving
      }
      return read
    },
    unreadable: ({ id }) => unreadable.get(id) ?? 0,
    stored: async () => {
      await Promise.all(pendingSaves)
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

/** Recalls the counts of the same slot, model and lexicon; others cannot be added to. */
async function recallSample(state: JobState, dao: Dao, slot: number, model: string): Promise<Sample | undefined> {
  const stored = await recall(state, dao.id, sample)
  return stored?.slot === slot && stored.lexicon === LEXICON && stored.model === model ? stored : undefined
}
