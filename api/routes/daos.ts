import { z } from 'zod'
import { daoLinks } from '../../shared/datasets/daos.ts'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { ACCOUNT_IDS, twitterCounts } from '../../shared/datasets/twitter.ts'
import { idValue, timeValue, toObject, uint32 } from '../formats/formats.ts'
import { defineList, listedDaos } from '../lists/lists.ts'
import { TOKEN_FACTS, TOKEN_LINKS, tokenFacts, tokenLinks } from './tokens.ts'

/** The token in a DAO's record, without financial data. */
const embeddedToken = z
  .strictObject({
    ...tokenFacts,
    ...tokenLinks,
  })
  .meta({ id: 'DaoToken', description: 'The token of a DAO, without financial data.' })

const link = (what: string) => z.url().nullable().describe(`URL of ${what}; null if none is known.`)

const daoRecord = z
  .strictObject({
    _id: idValue.describe('Id of the DAO.'),
    name: z.string().describe('Name of the DAO.'),
    image: link('its logo'),
    category: z.array(idValue).describe('Ids of its categories, records of /data/categories.'),
    mission: z.string().describe('Its mission in one sentence; empty if unknown.'),
    website: link('its website'),
    twitter: link('its account on Twitter'),
    discord: link('its server on Discord'),
    telegram: link('its group or channel on Telegram'),
    whitepaper: link('its white paper'),
    tokenomics: link("its description of the token's economics"),
    chain: z.array(idValue).describe('Ids of the chains that it is on, records of /data/chains.'),
    token: embeddedToken.nullable().describe('Its token; null if it has none.'),
    live: z.boolean().describe('Whether data is collected of it.'),
    createdAt: timeValue.describe('When the record was made here.'),
    updatedAt: timeValue.describe('When the record last changed.'),
    __v: uint32.describe('How often the record changed since `createdAt`.'),
    twitterid: z.string().nullable().describe('The number of its account on Twitter; null if unknown.'),
    slug: z.string().describe('Name in URLs.'),
    verified: z.boolean().describe('Whether a person has checked the record.'),
    description: z.string().describe('Description; empty if unknown.'),
    isOtc: z.boolean().describe('Whether its token is traded over the counter.'),
    snapshotName: z.string().nullable().describe('Its Snapshot space; null if there is none.'),
    treasuryAddress: z.array(z.string()).describe('Addresses of its treasury.'),
  })
  .meta({ id: 'Dao', description: 'A DAO with its token and links.' })

const filled = (field: string) => `coalesce(d.${field}, nullIf(d.links['${field}'], ''))`

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
  values: `d.id, d.name, ${filled('image')}, d.category_ids, d.mission, ${filled('website')}, ${filled('twitter')},
    ${filled('discord')}, ${filled('telegram')}, ${filled('whitepaper')}, d.tokenomics, d.chain_ids,
    if(t.id = '', NULL, ${toObject(embeddedToken, `${TOKEN_FACTS}, ${TOKEN_LINKS}`)}),
    d.live, d.created_at, d.updated_at, d.changes, ${TWITTER_ID}, d.slug, d.verified, d.description, d.is_otc,
    d.snapshot_name, d.treasury_addresses`,
  joins: 'LEFT JOIN (SELECT * FROM tokens FINAL) AS t ON t.key = d.token_key',
})
