import { z } from 'zod'
import { defillamaDeclaration } from '../../../shared/config/providers/defillama.ts'
import type { Provider } from '../../job/define-job.ts'
import { asSent, listOf } from '../answer.ts'
import { type DaoLinksSource, type Links, toLinkRows, toTwitterLink, type UnlinkedDao } from '../contracts/links.ts'
import { fetchProtocols, openDefiLlama, toNameSlug } from './client.ts'
import { isOf } from './tvl-rows.ts'

const protocol = z.object({ slug: asSent, parentProtocol: asSent, url: asSent, twitter: asSent, logo: asSent })
type Protocol = z.infer<typeof protocol>
/** /protocols: several thousand elements, of which these members are read (docs/providers.md, section 3.1). */
const protocolsAnswer = listOf(protocol)

/** DefiLlama's list of protocols; it needs no key (docs/providers.md, section 3.1). */
export const defillamaLinks: Provider<DaoLinksSource, UnlinkedDao> = {
  name: 'defillama',
  cost: defillamaDeclaration.cost,
  covers: (dao) => dao.defillama !== null,
  connect(context) {
    const client = openDefiLlama(context)
    return {
      async fetchLinks(daos, { slot, signal }) {
        const protocols = await fetchProtocols(client, protocolsAnswer, signal)
        return daos.flatMap((dao) => toLinkRows(dao, toLinks(protocols, dao), 'defillama', slot))
      },
    }
  },
}

/** Returns the links of the protocol with the DAO's name, or else of the first child of its parent protocol. */
function toLinks(protocols: readonly Protocol[], dao: UnlinkedDao): Links {
  const own = protocols.find(({ slug }) => slug === toNameSlug(dao)) ?? protocols.find(isOf(dao))
  return own === undefined ? {} : { website: own.url, twitter: toTwitterLink(own.twitter), image: own.logo }
}
