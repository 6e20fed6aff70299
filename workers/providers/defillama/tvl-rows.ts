import { z } from 'zod'
import type { ProtocolTvlRow } from '../../../shared/datasets/protocol-tvl.ts'
import type { Dao } from '../../../shared/registry/entities.ts'
import type { Candidate, Range } from '../../job/define-job.ts'
import { asSent, toIso } from '../answer.ts'
import { thin } from '../paging.ts'
import { toNameSlug } from './client.ts'

/** Protocols: several thousand, of which these members are read (providers document, section 3.1). */
export const protocolsAnswer = z.array(z.object({ slug: asSent, parentProtocol: asSent, tvl: asSent }))

/** Protocol/{slug}: daily points, times in Unix seconds (providers document, section 3.1). */
export const protocolAnswer = z.object({ tvl: z.array(z.object({ date: z.number(), totalLiquidityUSD: asSent })) })

const PARENT = 'parent#'

/** Whether a protocol is the DAO's: a child of the parent protocol of its id, or the one of its name. */
export const isOf =
  (dao: Pick<Dao, 'defillama' | 'defillamaSlug'>) =>
  ({ slug, parentProtocol }: { readonly slug?: unknown; readonly parentProtocol?: unknown }): boolean =>
    dao.defillama !== null && (toParentSlug(parentProtocol) === dao.defillama || slug === toNameSlug(dao))

/**
 * One row for each DAO with a protocol of a known value: the sum over the children of its parent protocol and over the
 * protocol of its name, each counted once. Protocols without a value are left out of the sum.
 */
export function toTvlRows(
  protocols: z.infer<typeof protocolsAnswer>,
  daos: readonly Dao[],
  slot: number,
): Candidate<ProtocolTvlRow>[] {
  return daos.flatMap((dao) => {
    const values = protocols.filter(isOf(dao)).flatMap(({ tvl }) => (typeof tvl === 'number' ? [tvl] : []))
    if (values.length === 0) return []
    return [{ dao: dao.key, observed_at: toIso(slot), tvl_usd: values.reduce((sum, value) => sum + value, 0) }]
  })
}

/** The first point of each bucket of the range: the newest day also has an intraday point. */
export function toTvlHistoryRows(
  { tvl }: z.infer<typeof protocolAnswer>,
  dao: Dao,
  range: Range,
): Candidate<ProtocolTvlRow>[] {
  return thin(tvl, ({ date }) => date * 1000, range).map(({ date, totalLiquidityUSD }) => ({
    dao: dao.key,
    observed_at: toIso(date * 1000),
    tvl_usd: totalLiquidityUSD ?? null,
  }))
}

/** The slug of a parent protocol; undefined where there is none. */
function toParentSlug(parentProtocol: unknown): string | undefined {
  return typeof parentProtocol === 'string' && parentProtocol.startsWith(PARENT)
    ? parentProtocol.slice(PARENT.length)
    : undefined
}
