import { z } from 'zod'
import { xDeclaration } from '../../../shared/config/providers/x.ts'
import type { Dao } from '../../../shared/registry/entities.ts'
import type { Provider } from '../../job/define-job.ts'
import { checkAnswer } from '../answer.ts'
import { openX, toHandle } from './client.ts'

/** One page of posts. Each post is billed, so a page is never requested twice. */
export interface PostsPage {
  /** Texts of the posts in one of `LANGUAGES`. */
  readonly texts: readonly string[]
  /** Number of posts of the sample, in any language. */
  readonly posts: number
  /** Number of posts that cannot be read. Such posts are billed as well, and would be billed again on a retry. */
  readonly unreadable: number
  /** Token of the next page; undefined after the last one. */
  readonly next: string | undefined
}

export interface PostsSource {
  /** Number of DAOs that may be requested concurrently. */
  readonly concurrency: number
  /** Number of posts read per DAO. */
  readonly sampleSize: number
  /** Pages per run before the rows are stored: a minute's requests, a small share of a job's time. */
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
/** The provider refuses an end time that has not passed; the margin covers clock differences. */
const END_MARGIN_MS = 60_000

/**
 * X's recent search (docs/providers.md, section 13): other accounts' posts to or about a DAO's account in the last
 * seven days. The search ends at the slot, so that a repeated slot finds the same posts.
 */
export const xPosts: Provider<PostsSource, Dao> = {
  name: 'x',
  cost: xDeclaration.cost,
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
        const missing = postsPerDao - read
        const query = {
          query: `@${handle} -from:${handle} ${IN_LANGUAGES} -is:retweet`,
          end_time: new Date(slot - END_MARGIN_MS).toISOString().replace(/\.\d+Z$/, 'Z'),
          [postFieldsParameter]: 'lang',
          max_results: Math.max(LEAST_PER_PAGE, Math.min(MOST_PER_PAGE, missing)),
          next_token: next,
        }
        const { data = [], meta } = toPosts(await client.get(PATH, query, signal))
        const seen = new Set<string>()
        const isNew = (id: string | undefined) => id === undefined || (!seen.has(id) && seen.add(id).has(id))
        const posts = data.filter((post) => post === null || isNew(post.id)).slice(0, missing)
        const readable = posts.filter((post) => post !== null)
        return {
          // The query requests languages, but the language of the returned post decides.
          texts: readable.filter(({ lang }) => lang === undefined || LANGUAGES.includes(lang)).map(({ text }) => text),
          posts: posts.length,
          unreadable: posts.length - readable.length,
          // Otherwise an empty page with a next token would be followed forever.
          next: data.length === 0 || data.length >= missing ? undefined : meta.next_token,
        }
      },
    }
  },
}

const post = z.object({
  id: z.string().optional().catch(undefined),
  text: z.string(),
  lang: z.string().optional().catch(undefined),
})

/** An unreadable post is null. */
const postsAnswer = z.object({
  data: z.array(post.nullable().catch(null)).optional(),
  meta: z.object({ next_token: z.string().optional() }),
})

/** Parses a page of posts; without hits it has no `data` (docs/providers.md, section 13). */
export function toPosts(answer: unknown): z.infer<typeof postsAnswer> {
  return checkAnswer(postsAnswer, answer, { provider: 'x', path: PATH })
}
