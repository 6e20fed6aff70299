import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { ratingsDeclaration } from '../../../shared/config/providers/ratings-file.ts'
import { toUrlSecrets } from '../../../shared/config/secrets.ts'
import type { DaoRatingRow } from '../../../shared/datasets/ratings.ts'
import { DataError } from '../../../shared/errors.ts'
import type { Dao } from '../../../shared/registry/entities.ts'
import type { Database } from '../../../shared/store/store.ts'
import type { Provider, ProviderContext, Run } from '../../job/define-job.ts'
import { readCsv } from './csv.ts'
import { readJson } from './json.ts'
import { toRatings } from './rows.ts'

export interface RatingsSource {
  /**
   * Reads the ratings of these DAOs from the operator's file, stamped with `slot` (Unix milliseconds). Bad rows are
   * logged and left out; DAOs without a rating are refused.
   * @throws DataError `provider_unconfigured` if no file is set.
   */
  fetchRatings(
    daos: readonly Dao[],
    slot: number,
    run: Pick<Run<unknown, Dao>, 'log' | 'refuse' | 'signal'>,
  ): Promise<DaoRatingRow[]>
}

/** At most one request per second to the operator's host. */
const REQUESTS_PER_MINUTE = 60

/**
 * The operator's file of ratings, by path or URL: JSON if it begins with a bracket, or else CSV (docs/providers.md,
 * section 12: no rating service has a documented API). No score is made up: without a file there are no ratings.
 */
export const ratingsFile: Provider<RatingsSource, Dao> = {
  name: 'ratings-file',
  cost: ratingsDeclaration.cost,
  covers: () => true,
  connect(context) {
    const { source } = context.config.providers.ratings
    const read = source === undefined ? undefined : createReader(source, context)
    return {
      async fetchRatings(daos, slot, { log, refuse, signal }) {
        if (source === undefined || read === undefined) {
          throw new DataError('provider_unconfigured', 'ratings-file: RATINGS_SOURCE is not set')
        }
        const text = await read(signal)
        signal.throwIfAborted()
        const file = toFileName(source)
        const records = /^\uFEFF?\s*[[{]/.test(text) ? readJson(text, file) : readCsv(text, file)
        if (records.length === 0) throw new DataError('provider_malformed', `${file}: there is no rating in it`)
        // The file is checked against all live DAOs: it may contain DAOs that are not requested, and these are not
        // unknown names.
        const { rows, faults } = toRatings(records, await readLiveDaos(context.db), slot, file)
        if (faults.length > 0) log.warn({ rejected: faults.length, of: records.length, faults }, 'ratings rejected')
        const rated = new Set(rows.map(({ dao }) => dao))
        const unrated = new DataError(
          'provider_unknown',
          `ratings-file: there is no rating that can be read in ${file}`,
        )
        for (const dao of daos) if (!rated.has(dao.key)) refuse(dao, unrated)
        return rows
      },
    }
  },
}

const NO_SUCH_FILE = [404, 410]

function createReader(source: string, { config, http }: ProviderContext): (signal: AbortSignal) => Promise<string> {
  if (!/^https?:\/\//.test(source)) return () => readLocal(source)
  const url = new URL(source)
  const { source: _, ...settings } = config.providers.ratings
  const client = http.open({
    provider: 'ratings-file',
    baseUrl: url.origin,
    requestsPerMinute: REQUESTS_PER_MINUTE,
    headers: { accept: 'text/csv, application/json;q=0.9, text/plain;q=0.8' },
    secrets: toUrlSecrets(source),
    ...settings,
  })
  const query = Object.fromEntries(url.searchParams)
  return async (signal) => {
    const text = await client.text({ path: url.pathname, route: '/{file}', query, absent: NO_SUCH_FILE, signal })
    if (text !== undefined) return text
    throw new DataError('provider_rejected', 'ratings-file: RATINGS_SOURCE: there is no such file')
  }
}

async function readLocal(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown'
    const reason = `ratings-file: RATINGS_SOURCE: ${toFileName(path)} cannot be read (${code})`
    throw new DataError('provider_unavailable', reason, { cause })
  }
}

function readLiveDaos(db: Database) {
  return db.rows({
    name: 'live-daos',
    sql: 'SELECT key, id, slug, name FROM daos FINAL WHERE live',
    schema: z.object({ key: z.number(), id: z.string(), slug: z.string(), name: z.string() }),
  })
}

/** The API returns this name. The name must not reveal the file's location, and a URL's query may contain a key. */
function toFileName(source: string): string {
  const path = /^https?:/.test(source) ? new URL(source).pathname : source
  return path.split('/').findLast((part) => part !== '') ?? 'the file'
}
