import { z } from 'zod'
import { toBatches } from '../../../shared/batches.ts'
import type { Provider } from '../../job/define-job.ts'
import { asSent } from '../answer.ts'
import { type DaoLinksSource, type Links, toChats, toFirst, toLinkRows, type UnlinkedDao } from '../contracts/links.ts'
import { COST, openCoinMarketCap } from './client.ts'

const INFO = '/v2/cryptocurrency/info'
/** Every hundred ids cost a credit. */
const IDS_PER_CALL = 100

const list = z.array(z.unknown()).nullish()
const coin = z.object({
  logo: asSent,
  urls: z.object({ website: list, twitter: list, chat: list, technical_doc: list }).nullish(),
})
/** Coins by their ids (providers document, section 1.3). */
const infoAnswer = z.object({ data: z.record(z.string(), coin) })

/** CoinMarketCap's metadata of coins, with a key or from the keyless mirror (providers document, section 1.3). */
export const coinmarketcapLinks: Provider<DaoLinksSource, UnlinkedDao> = {
  name: 'coinmarketcap',
  cost: COST,
  covers: (dao) => dao.cmcId !== null,
  connect(context) {
    const client = openCoinMarketCap(context)
    return {
      async fetchLinks(daos, { slot, signal }) {
        const rows = []
        for (const batch of toBatches(daos, IDS_PER_CALL)) {
          const query = { id: batch.map(({ cmcId }) => cmcId).join(','), skip_invalid: 'true' }
          const { data } = await client.fetch(client.toKeylessPath(INFO), query, infoAnswer, signal)
          rows.push(...batch.flatMap((dao) => toLinkRows(dao, toLinks(data[dao.cmcId ?? '']), 'coinmarketcap', slot)))
        }
        return rows
      },
    }
  },
}

function toLinks(found: z.infer<typeof coin> | undefined): Links {
  const { website, twitter, chat, technical_doc } = found?.urls ?? {}
  return {
    website: toFirst(website),
    twitter: toFirst(twitter),
    whitepaper: toFirst(technical_doc),
    image: found?.logo,
    ...toChats(chat ?? []),
  }
}
