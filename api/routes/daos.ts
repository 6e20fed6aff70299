import { z } from 'zod'
import { daoLinks } from '../../shared/datasets/daos.ts'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { DAO_ORDER, DAO_PLACE, LISTED_DAOS, selectedDaos } from '../lists/daos.ts'
import { page } from '../parameters/kinds.ts'
import { answerRecords } from '../records/answer.ts'
import { defineRoute } from '../route/define.ts'
import { daoKind, manyOfKind, selectMany } from '../route/entities.ts'
import { idValue, timeValue } from '../route/values.ts'

/** A Token as a DAO's record embeds it: without financial data. */
const embeddedToken = z.strictObject({
  _id: idValue,
  name: z.string(),
  symbol: z.string(),
  contractAddress: z.string(),
  decimal: z.int(),
  live: z.boolean(),
  dao: idValue,
  cmcId: z.string().nullable(),
  chain: idValue,
  livePrice: z.boolean(),
  chart24h: z.url(),
})

const link = z.url().nullable()

const daoRecord = z.strictObject({
  _id: idValue,
  name: z.string(),
  image: link,
  category: z.array(idValue),
  mission: z.string(),
  website: link,
  twitter: link,
  discord: link,
  telegram: link,
  whitepaper: link,
  tokenomics: link,
  chain: z.array(idValue),
  token: embeddedToken.nullable(),
  live: z.boolean(),
  createdAt: timeValue,
  updatedAt: timeValue,
  __v: z.int(),
  twitterid: z.string().nullable(),
  slug: z.string(),
  verified: z.boolean(),
  description: z.string(),
  isOtc: z.boolean(),
  snapshotName: z.string().nullable(),
  treasuryAddress: z.array(z.string()),
})

const TOKEN = `Tuple(_id String, name String, symbol String, contractAddress String, decimal UInt8, live Bool, dao String,
  cmcId Nullable(String), chain String, livePrice Bool, chart24h String)`

// Only a variant may be null as a whole: it holds the token or nothing.
const RECORD = `Tuple(_id String, name String, image Nullable(String), category Array(String), mission String,
  website Nullable(String), twitter Nullable(String), discord Nullable(String), telegram Nullable(String),
  whitepaper Nullable(String), tokenomics Nullable(String), chain Array(String), token Variant(${TOKEN}), live Bool,
  createdAt DateTime64(3, 'UTC'), updatedAt DateTime64(3, 'UTC'), __v UInt32, twitterid Nullable(String), slug String,
  verified Bool, description String, isOtc Bool, snapshotName Nullable(String), treasuryAddress Array(String))`

const filled = (field: string) => `coalesce(d.${field}, nullIf(d.links['${field}'], ''))`

const toSql = (after: string) => `
SELECT d.updated_at AS as_of, ${DAO_PLACE} AS page_key,
  CAST(tuple(d.id, d.name, ${filled('image')}, d.category_ids, d.mission, ${filled('website')}, ${filled('twitter')},
    ${filled('discord')}, ${filled('telegram')}, ${filled('whitepaper')}, d.tokenomics, d.chain_ids,
    if(t.id = '', NULL, CAST(tuple(t.id, t.name, t.symbol, t.contract_address, t.decimals, t.live, t.dao_id, t.cmc_id,
      t.chain_id, t.live_price, concat({charts: String}, t.id, '.svg')), $token$${TOKEN}$token$)),
    d.live, d.created_at, d.updated_at, d.changes, d.twitter_id, d.slug, d.verified, d.description, d.is_otc,
    d.snapshot_name, d.treasury_addresses), $record$${RECORD}$record$) AS record
FROM ${LISTED_DAOS}
LEFT JOIN (SELECT * FROM tokens FINAL) AS t ON t.key = d.token_key
WHERE ${selectedDaos(after)}
ORDER BY ${DAO_ORDER}
LIMIT {limit: UInt32}`

export const daosRoute = defineRoute({
  path: '/data/daos',
  aliases: ['/data/daos/'],
  tag: 'DAOs',
  summary: 'Live DAOs with their token and links',
  description:
    "All live DAOs, or those that `id` and `name` select; a name also fits by the symbol of the DAO's token. Exact name matches come first, then by the token's market cap, largest first, then by name. `discord` is a link; `category` and `chain` are ids of /data/categories and /data/chains; `__v` counts how often the record changed since `createdAt`.",
  query: { ...manyOfKind(daoKind), ...page('DAOs', { default: 10, max: 500 }) },
  record: daoRecord,
  datasets: [daoLinks, tokenPrices],
  handle: async (call) => {
    const { query, registry, config } = call
    const charts = `${config.api.publicUrl}/charts/24h/`
    const params = { ...selectMany(daoKind, registry, query), charts }
    const answer = await answerRecords(call, { name: 'daos', sql: toSql(call.wanted.after), params, page: query.limit })
    // A curated record does not grow stale by not changing.
    return { ...answer, staleAt: null }
  },
})
