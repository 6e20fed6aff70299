import { z } from 'zod'
import { daoLinks } from '../../shared/datasets/daos.ts'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { ACCOUNT_IDS, twitterCounts } from '../../shared/datasets/twitter.ts'
import { defineList, listedDaos } from '../lists/list.ts'
import { toObject } from '../records/columns.ts'
import { idValue, timeValue, uint8, uint32 } from '../records/values.ts'

/** A Token as a DAO's record embeds it: without financial data. */
const embeddedToken = z.strictObject({
  _id: idValue,
  name: z.string(),
  symbol: z.string(),
  contractAddress: z.string(),
  decimal: uint8,
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
  __v: uint32,
  twitterid: z.string().nullable(),
  slug: z.string(),
  verified: z.boolean(),
  description: z.string(),
  isOtc: z.boolean(),
  snapshotName: z.string().nullable(),
  treasuryAddress: z.array(z.string()),
})

const filled = (field: string) => `coalesce(d.${field}, nullIf(d.links['${field}'], ''))`

/** The account's id as X tells it with the counts, where the registry's files have none. */
const TWITTER_ID = `coalesce(d.twitter_id, nullIf(JSONExtractString(ifNull(
      (SELECT value FROM job_state FINAL WHERE job = '${twitterCounts.name}' AND name = '${ACCOUNT_IDS}'), '{}'), toString(d.key)), ''))`

const TOKEN = `t.id, t.name, t.symbol, t.contract_address, t.decimals, t.live, t.dao_id, t.cmc_id, t.chain_id, t.live_price,
      concat({charts: String}, t.id, '.svg')`

export const daosRoute = defineList({
  path: '/data/daos',
  aliases: ['/data/daos/'],
  summary: 'Live DAOs with their token and links',
  description:
    "All live DAOs, or those that `id` and `name` select; a name also fits by the symbol of the DAO's token. Exact name matches come first, then by the token's market cap, largest first, then by name. `discord` is a link; `image` is null where none is known, and /marks/{_id}.svg has a mark in its place; `category` and `chain` are ids of /data/categories and /data/chains; `__v` counts how often the record changed since `createdAt`.",
  of: listedDaos,
  record: daoRecord,
  datasets: [daoLinks, tokenPrices, twitterCounts],
  isCurated: true,
  name: 'daos',
  asOf: 'd.updated_at',
  values: `d.id, d.name, ${filled('image')}, d.category_ids, d.mission, ${filled('website')}, ${filled('twitter')},
    ${filled('discord')}, ${filled('telegram')}, ${filled('whitepaper')}, d.tokenomics, d.chain_ids,
    if(t.id = '', NULL, ${toObject(embeddedToken, TOKEN)}),
    d.live, d.created_at, d.updated_at, d.changes, ${TWITTER_ID}, d.slug, d.verified, d.description, d.is_otc,
    d.snapshot_name, d.treasury_addresses`,
  joins: 'LEFT JOIN (SELECT * FROM tokens FINAL) AS t ON t.key = d.token_key',
})
