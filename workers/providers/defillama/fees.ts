import { z } from 'zod'
import { defillamaDeclaration } from '../../../shared/config/providers/defillama.ts'
import type { DaoFeesRow } from '../../../shared/datasets/fees.ts'
import { DAY_MS, type TimeRange, toBucketStart } from '../../../shared/intervals.ts'
import type { Dao } from '../../../shared/registry/entities.ts'
import type { HttpClient } from '../../http/client.ts'
import type { Candidate, Omitted, Provider } from '../../job/define-job.ts'
import { asSent, checkAnswer, toIso, toNumber, toUnknown } from '../answer.ts'
import { openDefiLlama, TIMES_MAX_BYTES, toNameSlug } from './client.ts'

/** Rows of one DAO, and the points of its answers that cannot be read. */
interface FeeDays {
  readonly rows: Candidate<DaoFeesRow>[]
  readonly omitted: Omitted
}

/** Fees and revenue of DAOs by day. */
export interface FeesSource {
  /**
   * A row for each day of the range that is over.
   * @throws DataError `provider_unknown` if the provider has no fees of the DAO.
   */
  fetchFees(dao: Dao, range: TimeRange, signal: AbortSignal): Promise<FeeDays>
}

/** The server answers 400 with a text to a slug without fees. */
const NO_SUCH_PROTOCOL = [400, 404]

/**
 * `/summary/fees/{slug}`: `[Unix seconds of the day's start, US dollars]` for each day. The server answers `{}` for a
 * protocol that it knows and has no summary of. Source: DefiLlama/defillama-server `defi/src/api2/routes/dimensions.ts`.
 */
const summaryAnswer = z.union([z.object({ totalDataChart: z.array(asSent).nullable() }), z.strictObject({}), z.null()])

type Points = readonly unknown[]

/** DefiLlama's fees and revenue; it needs no key. Parent protocols have a summary of all their children. */
export const defillamaFees: Provider<FeesSource, Dao> = {
  name: 'defillama',
  cost: defillamaDeclaration.cost,
  covers: ({ defillama }) => defillama !== null,
  connect(context) {
    const { now = Date.now } = context
    const client = openDefiLlama(context)
    return {
      async fetchFees(dao, range, signal) {
        const path = `/summary/fees/${encodeURIComponent(toNameSlug(dao) ?? '')}`
        const fees = await fetchPoints(client, path, 'dailyFees', signal)
        if (fees.length === 0) throw toUnknown('defillama', path)
        const revenue = await fetchPoints(client, path, 'dailyRevenue', signal)
        const over = { from: range.from, to: Math.min(range.to, toBucketStart(now(), '1d')) }
        return toFeeDays(dao, { fees, revenue }, over)
      },
    }
  },
}

async function fetchPoints(client: HttpClient, path: string, dataType: string, signal: AbortSignal): Promise<Points> {
  const answer = await client.json({
    path,
    route: '/summary/fees/{slug}',
    query: { dataType, excludeTotalDataChartBreakdown: 'true' },
    signal,
    absent: NO_SUCH_PROTOCOL,
    timesMaxBytes: TIMES_MAX_BYTES,
  })
  if (answer === undefined) return []
  const summary = checkAnswer(summaryAnswer, answer, { provider: 'defillama', path })
  return summary !== null && 'totalDataChart' in summary ? (summary.totalDataChart ?? []) : []
}

/** A day's start and its value; null is a value that the provider does not know. */
const point = z.tuple([z.int(), z.unknown().transform(toNumber).pipe(z.number().nullable())])

/** The rows of the days in a range. A point that cannot be read costs only its own value. */
export function toFeeDays(dao: Dao, points: Readonly<Record<'fees' | 'revenue', Points>>, range: TimeRange): FeeDays {
  const faults: string[] = []
  const fees = toDays('fees', points.fees, faults)
  const revenue = toDays('revenue', points.revenue, faults)
  const days = [...new Set([...fees.keys(), ...revenue.keys()])].filter((day) => range.from <= day && day < range.to)
  const rows = days
    .sort((a, b) => a - b)
    .map((day) => ({
      dao: dao.key,
      observed_at: toIso(day + DAY_MS - 1),
      fees_usd: fees.get(day) ?? null,
      revenue_usd: revenue.get(day) ?? null,
    }))
  return { rows, omitted: { count: faults.length, reason: faults.at(-1) ?? '' } }
}

/** The known values of a chart by the start of their day in Unix milliseconds; a fault for each point that cannot be read. */
function toDays(kind: string, points: Points, faults: string[]): Map<number, number> {
  const days = new Map<number, number>()
  for (const candidate of points) {
    const { data, error } = point.safeParse(candidate)
    if (data === undefined) {
      const [issue] = error.issues
      faults.push(`${kind}: ${issue?.path.join('.') || 'point'}: ${issue?.message}`)
      continue
    }
    const [seconds, value] = data
    if (value !== null) days.set(toBucketStart(seconds * 1000, '1d'), value)
  }
  return days
}
