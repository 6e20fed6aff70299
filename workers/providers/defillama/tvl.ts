import { defillamaDeclaration } from '../../../shared/config/providers/defillama.ts'
import type { Dao } from '../../../shared/registry/entities.ts'
import type { HttpClient } from '../../http/client.ts'
import type { Provider, Range } from '../../job/define-job.ts'
import { checkAnswer, toUnknown } from '../answer.ts'
import type { TvlSource } from '../contracts/tvl.ts'
import { requestEach } from '../requests.ts'
import { fetchProtocols, openDefiLlama, TIMES_MAX_BYTES, toNameSlug } from './client.ts'
import { protocolAnswer, protocolsAnswer, toTvlHistoryRows, toTvlRows } from './tvl-rows.ts'

/**
 * For an unknown slug, the documentation specifies 404, but the server returns 400 (docs/providers.md, section 3.1).
 */
const NO_SUCH_PROTOCOL = [400, 404]
/** One request at a time, because responses are megabytes. */
const CONCURRENCY = 1

/** Value locked by DefiLlama (docs/providers.md, section 3.1). */
export const defillama: Provider<TvlSource, Dao> = {
  name: 'defillama',
  cost: defillamaDeclaration.cost,
  covers: (dao) => dao.defillama !== null,
  connect(context) {
    const client = openDefiLlama(context)
    return {
      async fetchTvl(daos, slot, signal) {
        return toTvlRows(await fetchProtocols(client, protocolsAnswer, signal), daos, slot)
      },
      async fetchTvlHistory(daos, range, { signal, ...run }) {
        const fetchOne = (dao: Dao) => fetchHistory(client, dao, range, signal)
        return (await requestEach(daos, fetchOne, { ...run, concurrency: CONCURRENCY, range })).flat()
      },
    }
  },
}

async function fetchHistory(client: HttpClient, dao: Dao, range: Range, signal: AbortSignal) {
  const path = `/protocol/${encodeURIComponent(toNameSlug(dao) ?? '')}`
  const answer = await client.json({
    path,
    route: '/protocol/{slug}',
    signal,
    absent: NO_SUCH_PROTOCOL,
    timesMaxBytes: TIMES_MAX_BYTES,
  })
  if (answer === undefined) throw toUnknown('defillama', path)
  return toTvlHistoryRows(checkAnswer(protocolAnswer, answer, { provider: 'defillama', path }), dao, range)
}
