import { defillamaDeclaration } from '../../../shared/config/providers/defillama.ts'
import type { DaoTreasuryRow } from '../../../shared/datasets/treasury.ts'
import { DataError } from '../../../shared/errors.ts'
import type { HttpClient } from '../../http/client.ts'
import type { Provider } from '../../job/define-job.ts'
import { checkAnswer, toUnknown, toUnreadable } from '../answer.ts'
import type { TreasurySource } from '../contracts/treasury.ts'
import type { TreasuryDao } from '../contracts/treasury-daos.ts'
import { type Held, type Holding, toTreasuryRow } from '../treasury-holdings.ts'
import { openDefiLlama, TIMES_MAX_BYTES, toNameSlug } from './client.ts'
import { listUnknown, listUnreadable, toDailyHoldings, toLatestHoldings, treasuryAnswer } from './treasury-days.ts'

/** One request at a time, because responses are megabytes. */
const CONCURRENCY = 1
/** The server returns 400 for a slug without a treasury (docs/providers.md, section 3.1). */
const NO_SUCH_TREASURY = [400, 404]

/** DefiLlama's treasuries; it needs no key (docs/providers.md, section 3.1). */
export const defillamaTreasury: Provider<TreasurySource, TreasuryDao> = {
  name: 'defillama',
  cost: defillamaDeclaration.cost,
  covers: ({ defillama }) => defillama !== null,
  connect(context) {
    const client = openDefiLlama(context)
    return {
      concurrency: CONCURRENCY,
      async fetchTreasury(dao, slot, signal) {
        const answer = await fetchAnswer(client, dao, signal)
        const faults = [...listUnreadable(answer), ...listUnknown(answer)]
        return toTreasuryRow(dao, slot, 'defillama', { ...toHeld(toLatestHoldings(answer, slot)), faults })
      },
      async fetchHistory(dao, range, signal) {
        const answer = await fetchAnswer(client, dao, signal)
        const rows = [...toDailyHoldings(answer, range)].flatMap(
          ([day, holdings]) => toTreasuryRow(dao, day, 'defillama', toHeld(holdings)) ?? [],
        )
        const unreadable = listUnreadable(answer).map((fault) => toUnreadable<DaoTreasuryRow>(fault, { dao: dao.key }))
        return [...rows, ...unreadable]
      },
    }
  },
}

/** The provider's lists are curated, so they contain no spam. */
const toHeld = (holdings: readonly Holding[]): Held => ({ holdings, spamCount: null })

async function fetchAnswer(client: HttpClient, dao: TreasuryDao, signal: AbortSignal) {
  const slug = toNameSlug(dao)
  if (slug === null) throw new DataError('provider_unknown', `defillama: ${dao.name} has no slug`)
  const path = `/treasury/${encodeURIComponent(slug)}`
  const answer = await client.json({
    path,
    route: '/treasury/{slug}',
    signal,
    absent: NO_SUCH_TREASURY,
    timesMaxBytes: TIMES_MAX_BYTES,
  })
  if (answer === undefined) throw toUnknown('defillama', path)
  return checkAnswer(treasuryAnswer, answer, { provider: 'defillama', path })
}
