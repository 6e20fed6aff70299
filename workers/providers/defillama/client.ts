import type { z } from 'zod'
import type { Dao } from '../../../shared/registry/entities.ts'
import type { HttpClient, HttpRequest } from '../../http/client.ts'
import type { ProviderContext } from '../../job/define-job.ts'
import { checkAnswer } from '../answer.ts'

type Opening = Pick<ProviderContext, 'config' | 'http'>

/** DefiLlama's free host; it needs no key (docs/providers.md, section 3.1). */
export function openDefiLlama({ config, http }: Opening): HttpClient {
  return http.open({ provider: 'defillama', ...config.providers.defillama })
}

/**
 * Opens DefiLlama's host of coin prices (docs/providers.md, section 3.2). The provider has removed `searchWidth` from
 * its documentation. If the host refuses that parameter, the request is repeated without it, and all later requests
 * omit it. Callers therefore check the times of the results.
 */
export function openDefiLlamaCoins({ config, http }: Opening): HttpClient {
  let isWidthRefused = false
  const readError = (status: number, body: string): undefined => {
    isWidthRefused ||= status >= 400 && status < 500 && body.includes(SEARCH_WIDTH)
  }
  const client = http.open({ provider: 'defillama-coins', ...config.providers.defillamaCoins, readError })
  const withoutWidth = (request: HttpRequest): HttpRequest => {
    const { [SEARCH_WIDTH]: _, ...query } = request.query ?? {}
    return { ...request, query }
  }
  return {
    ...client,
    async json(request) {
      const isSent = !isWidthRefused && request.query?.[SEARCH_WIDTH] !== undefined
      if (!isSent) return client.json(withoutWidth(request))
      try {
        return await client.json(request)
      } catch (error) {
        if (!isWidthRefused) throw error
        return client.json(withoutWidth(request))
      }
    },
  }
}

const SEARCH_WIDTH = 'searchWidth'

/**
 * Returns the slug of a protocol's page, which is derived from its name. Children refer to the protocol by its id
 * (docs/providers.md, section 3.1).
 */
export const toNameSlug = ({ defillama, defillamaSlug }: Pick<Dao, 'defillama' | 'defillamaSlug'>): string | null =>
  defillamaSlug ?? defillama

/**
 * Factor for the size limit. The response for one protocol or treasury contains all its tokens on all chains by day,
 * and cannot be requested in parts. For the largest ones, it is larger than any other response.
 */
export const TIMES_MAX_BYTES = 4

const PROTOCOLS = '/protocols'

/** Fetches the list of all protocols, several thousand; `schema` selects the members to read. */
export async function fetchProtocols<T>(client: HttpClient, schema: z.ZodType<T>, signal: AbortSignal): Promise<T> {
  const answer = await client.json({ path: PROTOCOLS, signal })
  return checkAnswer(schema, answer, { provider: 'defillama', path: PROTOCOLS })
}
