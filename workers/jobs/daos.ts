import { daoLinks } from '../../shared/datasets/daos.ts'
import type { Dao } from '../../shared/registry/entities.ts'
import { hasNoOwnValue, LINK_FIELDS } from '../../shared/registry/found-links.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import { defineJob } from '../job/define-job.ts'
import { coingeckoLinks } from '../providers/coingecko/links.ts'
import { coinmarketcapLinks } from '../providers/coinmarketcap/links.ts'
import type { UnlinkedDao } from '../providers/contracts/links.ts'
import { defillamaLinks } from '../providers/defillama/links.ts'

/** Links and logos of live DAOs that the registry files leave empty. Links in the files are never requested. */
export default defineJob({
  name: 'daos',
  cadence: '1d',
  dataset: daoLinks,
  providers: [coinmarketcapLinks, defillamaLinks, coingeckoLinks],
  entities: (registry) => daoLinks.entities(registry).map((dao) => toUnlinked(dao, registry)),
  run: ({ provider, entities, ...run }) => provider.fetchLinks(entities, run),
})

function toUnlinked(dao: Dao, { tokenById }: Registry): UnlinkedDao {
  const token = dao.token === null ? undefined : tokenById.get(dao.token)
  const missing = LINK_FIELDS.filter((field) => hasNoOwnValue(dao, field))
  return { ...dao, missing, cmcId: token?.cmcId ?? null, coingeckoId: token?.coingeckoId ?? null }
}
