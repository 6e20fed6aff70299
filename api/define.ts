import type { Readable } from 'node:stream'
import type { z } from 'zod'
import type { Database } from '../shared/clickhouse.ts'
import type { CommitFeed } from '../shared/commits.ts'
import type { Config } from '../shared/config.ts'
import type { DatasetFacts } from '../shared/datasets/list.ts'
import type { Registry } from '../shared/registry/registry.ts'
import { type EntityKind, findOne, type Named, oneOfKind } from './entities.ts'
import type { Fragments } from './fragments.ts'
import type { QueryShape } from './parameters/parse.ts'

/** What every route may use. `now` is the only clock, in Unix milliseconds. */
export interface Surroundings {
  readonly db: Database
  readonly registry: Registry
  readonly config: Config
  readonly commits: CommitFeed
  readonly fragments: Fragments
  readonly now: () => number
}

interface AnswerFacts {
  /** Time of the newest datum used, in Unix milliseconds; null when the answer holds none. */
  readonly asOf: number | null
  /** From when on the data counts as stale, in Unix milliseconds; `undefined` follows the cadence, null is never. */
  readonly staleAt?: number | null
  /** From when on the clock alone makes the answer another one, in Unix milliseconds. */
  readonly expiresAt?: number
  readonly headers?: Readonly<Record<string, string>>
}

/** A whole answer: it is kept as bytes until one of its datasets changes. */
interface BytesAnswer extends AnswerFacts {
  readonly body: Buffer
}

/** A long answer: its frame around what ClickHouse writes, never whole in memory. */
export interface StreamAnswer extends AnswerFacts {
  /** What the entity tag is made of: it differs whenever the bytes do. */
  readonly digest: string
  readonly before: string
  readonly after: string
  open(signal: AbortSignal): Promise<Readable>
  /**
   * Whether the data still has that digest. It is asked after the last row was read: a commit between the digest and the
   * stream would send other bytes under a strong tag, and ClickHouse has no snapshot that spans two queries.
   */
  holds(): Promise<boolean>
}

export type Answer = BytesAnswer | StreamAnswer

type Call<Query, Found> = Surroundings & { readonly query: Query; readonly found: Found }

type NoEntity = undefined

interface RouteDefinition<Shape extends QueryShape, E extends Named | NoEntity> {
  /** Parts in braces are path parameters, declared in `query` like the others. */
  readonly path: string
  /** Served as well, with a `Link` to `path` (contract section 1). */
  readonly aliases?: readonly string[]
  readonly tag: string
  readonly summary: string
  readonly description?: string
  /** A single-entity route: it takes one `id` or one `name`, and `found` is the entity. */
  readonly one?: E extends Named ? EntityKind<E> : never
  readonly query: Shape
  /** Every response body fits it; for other types than JSON it describes the text. */
  readonly response: z.ZodType
  readonly contentType?: string
  /** Whose commits make kept bytes stale; the first one's cadence says when the data is. */
  readonly datasets: readonly DatasetFacts[]
  /** Answers of the moment, such as health: never kept, by nobody. */
  readonly volatile?: boolean
  /** Headers of its own that a 200 answer carries, name to description. */
  readonly headers?: Readonly<Record<string, string>>
  handle(call: Call<z.output<z.ZodObject<Shape>>, E>): Promise<Answer>
}

/** A declared route with its own types closed over, so that one list can hold all of them. */
export interface Route {
  readonly path: string
  readonly aliases: readonly string[]
  readonly tag: string
  readonly summary: string
  readonly description: string | undefined
  readonly query: QueryShape
  readonly response: z.ZodType
  readonly contentType: string
  readonly datasets: readonly DatasetFacts[]
  readonly volatile: boolean
  readonly headers: Readonly<Record<string, string>>
  /**
   * Settles what a parsed query means. `key` is equal for every query with the same answer; `answer` finds it.
   * @throws Problem when the query names no entity or several.
   */
  settle(query: Readonly<Record<string, unknown>>, surroundings: Surroundings): Settled
}

interface Settled {
  readonly key: string
  answer(): Promise<Answer>
}

/** Declares a route: everything about one path that is not plumbing. */
export function defineRoute<Shape extends QueryShape, E extends Named | NoEntity = NoEntity>(
  route: RouteDefinition<Shape, E>,
): Route {
  const kind = route.one as EntityKind<Named> | undefined
  return {
    path: route.path,
    aliases: route.aliases ?? [],
    tag: route.tag,
    summary: route.summary,
    description: route.description,
    query: kind === undefined ? route.query : { ...oneOfKind(kind), ...route.query },
    response: route.response,
    contentType: route.contentType ?? 'application/json; charset=utf-8',
    datasets: route.datasets,
    volatile: route.volatile ?? false,
    headers: route.headers ?? {},
    settle: (query, surroundings) => {
      const found = kind === undefined ? undefined : findOne(kind, surroundings.registry, query)
      // By id or by name, an entity's answer is one answer.
      const canonical = found === undefined ? query : { ...query, id: found.id, name: undefined }
      return {
        key: `${route.path}?${JSON.stringify(Object.entries(canonical).sort(([a], [b]) => (a < b ? -1 : 1)))}`,
        answer: () =>
          route.handle({ ...surroundings, query: query as z.output<z.ZodObject<Shape>>, found: found as E }),
      }
    },
  }
}
