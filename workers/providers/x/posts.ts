import { z } from 'zod'
import type { Dao } from '../../../shared/registry/entities.ts'
import type { Provider } from '../../job/define-job.ts'
import { checkAnswer } from '../answer.ts'
import { COST, openX, toHandle } from './client.ts'

/** One page of posts. Each post is billed, so a page that was read is never asked for again. */
export interface PostsPage {
  /** Of the posts in one of `LANGUAGES`. */
  readonly texts: readonly string[]
  /** How many posts of the sample these are, in whatever language. */
  readonly posts: number
  /** Where the next page begins; undefined after the last one. */
  readonly next: string | undefined
}

export interface PostsSource {
  /** How many DAOs may be asked for at the same time. */
  readonly concurrency: number
  /** How many posts of a DAO are read. */
  readonly sampleSize: number
  /** How many pages a run reads before it is stored: a minute's requests, which is a small part of a job's time. */
  readonly pagesPerRun: number
  /**
   * The newest posts about a DAO in `LANGUAGES` before `slot` (Unix milliseconds), from the page `next` on; `read` of the sample
   * were read before.
   */
  fetchPage(
    dao: Dao,
    slot: number,
    from: { readonly next: string | undefined; readonly read: number },
    signal: AbortSignal,
  ): Promise<PostsPage>
}

const PATH = '/2/tweets/search/recent'
/** The languages that the sentiment model is measured in (docs/sentiment.md), by X's codes. */
const LANGUAGES = ['en', 'ar', 'de', 'es', 'fr', 'hi', 'it', 'pt']
const IN_LANGUAGES = `(${LANGUAGES.map((code) => `lang:${code}`).join(' OR ')})`
const CONCURRENCY = 2
const LEAST_PER_PAGE = 10
const MOST_PER_PAGE = 100
/** The provider refuses an end that is not over yet, clocks of both sides included. */
const END_MARGIN_MS = 60_000

/**
 * X's recent search (docs/providers.md, section 13): what others write to or about a DAO's account in the last seven
 * days. It ends at the slot, so that a slot asked again is about the same posts.
 */
export const xPosts: Provider<PostsSource, Dao> = {
  name: 'x',
  cost: COST,
  covers: ({ twitter }) => toHandle(twitter) !== undefined,
  connect(context) {
    const client = openX(context)
    const { postFieldsParameter, postsPerDao, requestsPerMinute } = context.config.providers.x
    return {
      concurrency: CONCURRENCY,
      sampleSize: postsPerDao,
      pagesPerRun: requestsPerMinute,
      async fetchPage(dao, slot, { next, read }, signal) {
        const handle = toHandle(dao.twitter)
        const wanted = postsPerDao - read
        const query = {
          query: `@${handle} -from:${handle} ${IN_LANGUAGES} -is:retweet`,
          end_time: new Date(slot - END_MARGIN_MS).toISOString().replace(/\.\d+Z$/, 'Z'),
          [postFieldsParameter]: 'lang',
          max_results: Math.max(LEAST_PER_PAGE, Math.min(MOST_PER_PAGE, wanted)),
          next_token: next,
        }
        const { data = [], meta } = toPosts(await client.get(PATH, query, signal))
        const posts = data.slice(0, wanted)
        const readable = posts.filter((post) => post !== null)
        const unreadable = posts.length - readable.length
        // They are billed as well, and would be again.
        if (unreadable > 0) context.log.warn({ provider: 'x', dao: dao.name, unreadable }, 'posts cannot be read')
        return {
          // The query selects languages; the language that the provider names with a post is what counts.
          texts: readable.filter(({ lang }) => lang === undefined || LANGUAGES.includes(lang)).map(({ text }) => text),
          posts: posts.length,
          // An empty page that names a next one would be followed for ever.
          next: data.length === 0 || data.length >= wanted ? undefined : meta.next_token,
        }
      },
    }
  },
}

const post = z.object({ text: z.string(), lang: z.string().optional().catch(undefined) })

/** A post that cannot be read is null. */
const postsAnswer = z.object({
  data: z.array(post.nullable().catch(null)).optional(),
  meta: z.object({ next_token: z.string().optional() }),
})

/** A page of posts; without hits it has no `data` (docs/providers.md, section 13). */
export function toPosts(answer: unknown): z.infer<typeof postsAnswer> {
  return checkAnswer(postsAnswer, answer, { provider: 'x', path: PATH })
}
