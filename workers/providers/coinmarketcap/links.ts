import { z } from 'zod'
import { coinmarketcapDeclaration } from '../../../shared/config/providers/coinmarketcap.ts'
import type { DaoLinkRow } from '../../../shared/datasets/daos.ts'
import { toBatches } from '../../../shared/group-by.ts'
import type { Candidate, Provider } from '../../job/define-job.ts'
import { asSent, isUnreadable, mapOf, toUnreadable } from '../answer.ts'
import { type DaoLinksSource, type Links, toChats, toFirst, toLinkRows, type UnlinkedDao } from '../contracts/links.ts'
import { openCoinMarketCap } from './client.ts'

const INFO = '/v2/cryptocurrency/info'
/** Every hundred ids cost one credit. */
const IDS_PER_CALL = 100

const list = z.array(z.unknown()).optional().catch(undefined)
const urls = z.object({ website: list, twitter: list, chat: list, technical_doc: list })
const coin = z.object({ logo: asSent, urls: urls.optional().catch(undefined) })
/** Coins by their ids (docs/providers.md, section 1.3). */
const infoAnswer = z.object({ data: mapOf(coin) })

/** CoinMarketCap's metadata of coins, with a key or from the keyless mirror (docs/providers.md, section 1.3). */
export const coinmarketcapLinks: Provider<DaoLinksSource, UnlinkedDao> = {
  name: 'coinmarketcap',
  cost: coinmarketcapDeclaration.cost,
  covers: (dao) => dao.cmcId !== null,
  connect(context) {
    const client = openCoinMarketCap(context)
    return {
      async fetchLinks(daos, { slot, signal }) {
        const rows: Candidate<DaoLinkRow>[] = []
        for (const batch of toBatches(daos, IDS_PER_CALL)) {
          const query = { id: batch.map(({ cmcId }) => cmcId).join(','), skip_invalid: 'true' }
          const { data } = await client.fetch(client.toKeylessPath(INFO), query, infoAnswer, signal)
          for (const dao of batch) {
            const found = data[dao.cmcId ?? '']
            if (found !== undefined && isUnreadable(found))
              rows.push(toUnreadable<DaoLinkRow>('data.*: expected a coin', { dao: dao.key }))
            else rows.push(...toLinkRows(dao, toLinks(found), 'coinmarketcap', slot))
          }
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
