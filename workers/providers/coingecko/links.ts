import { z } from 'zod'
import { coingeckoDeclaration } from '../../../shared/config/providers/coingecko.ts'
import type { HttpClient } from '../../http/client.ts'
import type { Provider } from '../../job/define-job.ts'
import { asSent, checkAnswer, toUnknown } from '../answer.ts'
import {
  type DaoLinksSource,
  type Links,
  toChats,
  toFirst,
  toLinkRows,
  toTwitterLink,
  type UnlinkedDao,
} from '../contracts/links.ts'
import { toTurn } from '../plan.ts'
import { requestEach } from '../requests.ts'
import { openCoinGecko, toBudget } from './client.ts'

/** Coins/{id} (docs/providers.md, section 2). */
const list = z.array(z.unknown()).nullish().catch(null)
const coinAnswer = z.object({
  links: z.object({
    homepage: list,
    whitepaper: asSent,
    chat_url: list,
    twitter_screen_name: asSent,
    telegram_channel_identifier: asSent,
  }),
  image: z.object({ large: asSent }).nullish().catch(null),
})

/**
 * CoinGecko's description of a coin: one call each (docs/providers.md, section 2). If a month's calls do not suffice
 * for all DAOs each day, the DAOs take turns.
 */
export const coingeckoLinks: Provider<DaoLinksSource, UnlinkedDao> = {
  name: 'coingecko',
  cost: coingeckoDeclaration.cost,
  covers: (dao) => dao.coingeckoId !== null,
  connect(context) {
    const client = openCoinGecko(context)
    const perDay = Math.max(1, toBudget(context.config)?.linksPerDay ?? Number.POSITIVE_INFINITY)
    return {
      async fetchLinks(daos, run) {
        const { slot, signal, putOff } = run
        const turn = toTurn(daos, perDay, slot, '1d')
        putOff(daos.filter((dao) => !turn.includes(dao)))
        const fetchOne = async (dao: UnlinkedDao) => {
          return toLinkRows(dao, await fetchLinks(client, dao.coingeckoId ?? '', signal), 'coingecko', slot)
        }
        return (await requestEach(turn, fetchOne, { ...run, concurrency: 1, expected: run.peers.own })).flat()
      },
    }
  },
}

async function fetchLinks(client: HttpClient, id: string, signal: AbortSignal): Promise<Links> {
  const path = `/coins/${encodeURIComponent(id)}`
  const query = { localization: 'false', tickers: 'false', market_data: 'false', developer_data: 'false' }
  const answer = await client.json({ path, route: '/coins/{id}', query, signal, absent: [404] })
  if (answer === undefined) throw toUnknown('coingecko', path)
  const { links, image } = checkAnswer(coinAnswer, answer, { provider: 'coingecko', path })
  const channel = links.telegram_channel_identifier
  const chats = toChats(links.chat_url ?? [])
  return {
    website: toFirst(links.homepage),
    twitter: toTwitterLink(links.twitter_screen_name),
    discord: chats.discord,
    telegram: typeof channel === 'string' && channel !== '' ? `https://t.me/${channel}` : chats.telegram,
    whitepaper: links.whitepaper,
    image: image?.large,
  }
}
