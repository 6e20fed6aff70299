import { z } from 'zod'
import { lockedValue, type ProtocolTvlRow } from '../../../shared/datasets/protocol-tvl.ts'
import type { Dao } from '../../../shared/registry/entities.ts'
import { type Candidate, OMITTED, type Range } from '../../job/define-job.ts'
import { asSent, isTime, listOf, orNull, toIso, toUnreadable } from '../answer.ts'
import { thin } from '../paging.ts'
import { toNameSlug } from './client.ts'

/** /protocols: several thousand elements, of which these members are read (docs/providers.md, section 3.1). */
export const protocolsAnswer = listOf(z.object({ slug: asSent, parentProtocol: asSent, tvl: asSent }))

/** /protocol/{slug}: daily points, times in Unix seconds (docs/providers.md, section 3.1). */
export const protocolAnswer = z.object({ tvl: listOf(z.object({ date: asSent, totalLiquidityUSD: asSent })) })

const PARENT = 'parent#'

/**
 * Returns whether a protocol belongs to the DAO: a child of the parent protocol with its id, or the protocol with its
 * name.
 */
export const isOf =
  (dao: Pick<Dao, 'defillama' | 'defillamaSlug'>) =>
  ({ slug, parentProtocol }: { readonly slug?: unknown; readonly parentProtocol?: unknown }): boolean =>
    dao.defillama !== null && (toParentSlug(parentProtocol) === dao.defillama || slug === toNameSlug(dao))

/**
 * Returns one row for each DAO with a protocol of a known value. The value is the sum over the children of its parent
 * protocol and the protocol with its name, each counted once. Protocols with a missing or invalid value are left out of
 * the sum.
 */
export function toTvlRows(
  protocols: z.infer<typeof protocolsAnswer>,
  daos: readonly Dao[],
  slot: number,
): Candidate<ProtocolTvlRow>[] {
  // A protocol without a slug may belong to any DAO.
  const nameless = protocols.filter(({ slug }) => typeof slug !== 'string').map(() => NAMELESS)
  const rows = daos.flatMap((dao): Candidate<ProtocolTvlRow>[] => {
    const own = new Map(protocols.filter(isOf(dao)).map((protocol) => [protocol.slug, protocol]))
    const tvls = [...own.values()].flatMap(({ tvl }) => tvl ?? [])
    const values = tvls.flatMap((tvl) => orNull(lockedValue, tvl) ?? [])
    const unusable = tvls.filter((tvl) => orNull(lockedValue, tvl) === null).map(() => FAULTY_TVL)
    if (values.length === 0) return unusable.map((fault) => toUnreadable<ProtocolTvlRow>(fault, { dao: dao.key }))
    const tvl_usd = values.reduce((sum, value) => sum + value, 0)
    const faults = [...unusable, ...nameless]
    return [{ dao: dao.key, observed_at: toIso(slot), tvl_usd, ...(faults.length > 0 ? { [OMITTED]: faults } : {}) }]
  })
  return [...rows, ...nameless.map((fault) => toUnreadable<ProtocolTvlRow>(fault))]
}

const NAMELESS = 'slug: expected the slug of a protocol'

const FAULTY_TVL = 'tvl: no value that can be'

/** Returns the first point of each bucket of the range, because the newest day also has an intraday point. */
export function toTvlHistoryRows(
  { tvl }: z.infer<typeof protocolAnswer>,
  dao: Dao,
  range: Range,
): Candidate<ProtocolTvlRow>[] {
  const toTime = ({ date }: (typeof tvl)[number]) => Number(date ?? Number.NaN) * 1000
  const timeless = tvl.filter((point) => !isTime(toTime(point)))
  const dated = tvl.filter((point) => isTime(toTime(point)))
  return [
    ...thin(dated, toTime, range).map((point) => ({
      dao: dao.key,
      observed_at: toIso(toTime(point)),
      tvl_usd: point.totalLiquidityUSD ?? null,
    })),
    ...timeless.map(() => toUnreadable<ProtocolTvlRow>('tvl.*.date: no time that can be', { dao: dao.key })),
  ]
}

/** Returns the slug of a parent protocol; undefined if there is none. */
function toParentSlug(parentProtocol: unknown): string | undefined {
  return typeof parentProtocol === 'string' && parentProtocol.startsWith(PARENT)
    ? parentProtocol.slice(PARENT.length)
    : undefined
}
