import { z } from 'zod'
import type { ProtocolTvlRow } from '../../../shared/datasets/protocol-tvl.ts'
import type { Dao } from '../../../shared/registry/entities.ts'
import type { Candidate, Range } from '../../job/define-job.ts'
import { asSent, toIso } from '../answer.ts'
import { thin } from '../paging.ts'

/** Protocols: several thousand, of which these members are read (providers document, section 3.1). */
export const protocolsAnswer = z.array(z.object({ slug: asSent, parentProtocol: asSent, tvl: asSent }))

/** Protocol/{slug}: daily points, times in Unix seconds (providers document, section 3.1). */
export const protocolAnswer = z.object({ tvl: z.array(z.object({ date: z.number(), totalLiquidityUSD: asSent })) })

const PARENT = 'parent#'

/**
 * One row for each DAO with a protocol of a known value: the sum over the children of the parent protocol of that slug
 * and over the protocol of that slug itself. Protocols without a value are left out of the sum.
 */
export function toTvlRows(
  protocols: z.infer<typeof protocolsAnswer>,
  daos: readonly Dao[],
  slot: number,
): Candidate<ProtocolTvlRow>[] {
  const sums = new Map<string, number>()
  for (const { slug, parentProtocol, tvl } of protocols) {
    if (typeof tvl !== 'number') continue
    const names = new Set([slug, toParentSlug(parentProtocol)])
    for (const name of names) if (typeof name === 'string') sums.set(name, (sums.get(name) ?? 0) + tvl)
  }
  return daos.flatMap((dao) => {
    const sum = dao.defillama === null ? undefined : sums.get(dao.defillama)
    return sum === undefined ? [] : [{ dao: dao.key, observed_at: toIso(slot), tvl_usd: sum }]
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
export function toParentSlug(parentProtocol: unknown): string | undefined {
  return typeof parentProtocol === 'string' && parentProtocol.startsWith(PARENT)
    ? parentProtocol.slice(PARENT.length)
    : undefined
}
