import { DAO_VALUES, daoRecord, embeddedToken } from '../../shared/datasets/dao-records.ts'
import { daoLinks } from '../../shared/datasets/daos.ts'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { TOKEN_FACTS, TOKEN_LINKS } from '../../shared/datasets/token-records.ts'
import { ACCOUNT_IDS, twitterCounts } from '../../shared/datasets/twitter.ts'
import { toObject } from '../formats/formats.ts'
import { defineList, listedDaos } from '../lists/lists.ts'

/** The id of the account: from the registry, else from the last response of X. */
const TWITTER_ID = `coalesce(d.twitter_id, nullIf(JSONExtractString(ifNull(
      (SELECT value FROM job_state FINAL WHERE job = '${twitterCounts.name}' AND name = '${ACCOUNT_IDS}'), '{}'), toString(d.key)), ''))`

export const daosRoute = defineList({
  operation: 'listDaos',
  path: '/data/daos',
  aliases: ['/data/daos/'],
  summary: 'Live DAOs with their token and links',
  description:
    "All live DAOs, or those that `id` and `name` select; a name also fits by the symbol of the DAO's token. Exact name matches come first, then by the token's market cap, largest first, then by name. `discord` is a link; `image` is null if none is known, and /marks/{_id}.svg has a mark in its place; `category` and `chain` are ids of /data/categories and /data/chains; `__v` counts how often the record changed since `createdAt`.",
  of: listedDaos,
  record: daoRecord,
  datasets: [daoLinks, tokenPrices, twitterCounts],
  isCurated: true,
  name: 'daos',
  asOf: 'd.updated_at',
  values: {
    ...DAO_VALUES,
    token: `if(t.id = '', NULL, ${toObject(embeddedToken, { ...TOKEN_FACTS, ...TOKEN_LINKS })})`,
    twitterid: TWITTER_ID,
  },
  joins: 'LEFT JOIN (SELECT * FROM tokens FINAL) AS t ON t.key = d.token_key',
})
