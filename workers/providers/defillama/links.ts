import { z } from 'zod'
import type { Provider } from '../../job/define-job.ts'
import { asSent } from '../answer.ts'
import { type DaoLinksSource, type Links, toLinkRows, toTwitterLink, type UnlinkedDao } from '../contracts/links.ts'
import { fetchProtocols, openDefiLlama } from './client.ts'
import { toParentSlug } from './tvl-rows.ts'

const protocol = z.object({ slug: asSent, parentProtocol: asSent, url: asSent, twitter: asSent, logo: asSent })
type Protocol = z.infer<typeof protocol>
/** Protocols: several thousand, of which these members are read (providers document, section 3.1). */
const protocolsAnswer = z.array(protocol)

/** DefiLlama's list of protocols; it needs no key (providers document, section 3.1). */
export const defillamaLinks: Provider<DaoLinksSource, UnlinkedDao> = {
  name: 'defillama',
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

/** The links of the protocol with the DAO's slug, else of the first child of the parent with that slug. */
function toLinks(protocols: readonly Protocol[], { defillama }: UnlinkedDao): Links {
  const isChild = ({ parentProtocol }: Protocol) => toParentSlug(parentProtocol) === defillama
  const own = protocols.find(({ slug }) => slug === defillama) ?? protocols.find(isChild)
  return own === undefined ? {} : { website: own.url, twitter: toTwitterLink(own.twitter), image: own.logo }
}
