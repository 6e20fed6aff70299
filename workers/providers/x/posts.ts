import { z } from 'zod'
import type { Dao } from '../../../shared/registry/entities.ts'
import type { Provider } from '../../job/define-job.ts'
import { checkAnswer } from '../answer.ts'
import { openX, toHandle, type XClient } from './client.ts'

export interface PostsSource {
  /** How many DAOs may be asked for at the same time. */
  readonly concurrency: number
  /** Texts of the newest English posts about a DAO before `slot` (Unix milliseconds), up to the sample's size. */
  fetchTexts(dao: Dao, slot: number, signal: AbortSignal): Promise<string[]>
}

const PATH = '/2/tweets/search/recent'
const CONCURRENCY = 2
const LEAST_PER_PAGE = 10
const MOST_PER_PAGE = 100
/** The provider refuses an end that is not over yet, clocks of both sides included. */
const END_MARGIN_MS = 60_000

/**
 * X's recent search (providers document, section 13): what others write to or about a DAO's account in the last seven
 * days. It ends at the slot, so that a slot asked again is about the same posts.
 */
export const xPosts: Provider<PostsSource, Dao> = {
  name: 'x',
  covers: ({ twitter }) => toHandle(twitter) !== undefined,
  connect(context) {
    const client = openX(context)
    const { postFieldsParameter, postsPerDao } = context.config.providers.x
    return {
      concurrency: CONCURRENCY,
      fetchTexts(dao, slot, signal) {
        const handle = toHandle(dao.twitter)
        const query = {
          query: `@${handle} -from:${handle} lang:en -is:retweet`,
          end_time: new Date(slot - END_MARGIN_MS).toISOString().replace(/\.\d+Z$/, 'Z'),
          [postFieldsParameter]: 'lang',
        }
        return fetchPages(client, query, postsPerDao, signal)
      },
    }
  },
}

const postsAnswer = z.object({
  data: z.array(z.object({ text: z.string(), lang: z.string().optional() })).optional(),
  meta: z.object({ next_token: z.string().optional() }),
})

/** A page of posts; without hits it has no `data` (providers document, section 13). */
export function toPosts(answer: unknown): z.infer<typeof postsAnswer> {
  return checkAnswer(postsAnswer, answer, { provider: 'x', path: PATH })
}

async function fetchPages(
  client: XClient,
  query: Readonly<Record<string, string>>,
  most: number,
  signal: AbortSignal,
): Promise<string[]> {
  const posts: NonNullable<z.infer<typeof postsAnswer>['data']> = []
  let next: string | undefined
  do {
    const max_results = Math.max(LEAST_PER_PAGE, Math.min(MOST_PER_PAGE, most - posts.length))
    const page = { ...query, max_results, next_token: next }
    const { data = [], meta } = toPosts(await client.get(PATH, page, signal))
    posts.push(...data)
    // An empty page that names a next one would be followed for ever.
    next = data.length === 0 ? undefined : meta.next_token
  } while (next !== undefined && posts.length < most)
  // The query asks for English; the provider's own word on a post is what counts.
  return posts
    .slice(0, most)
    .filter(({ lang }) => lang === undefined || lang === 'en')
    .map(({ text }) => text)
}
