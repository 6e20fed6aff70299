import { z } from 'zod'
import { idValue, timeValue, uint32 } from '../record-values.ts'
import { tokenFacts, tokenLinks } from './token-records.ts'

/** The token in a DAO's record, without financial data. */
export const embeddedToken = z
  .strictObject({
    ...tokenFacts,
    ...tokenLinks,
  })
  .meta({ id: 'DaoToken', description: 'The token of a DAO, without financial data.' })

const link = (what: string) => z.url().nullable().describe(`URL of ${what}; null if none is known.`)

export const daoRecord = z
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

/** SQL of the members of a DAO's record that its row `d` has. */
export const DAO_VALUES = {
  _id: 'd.id',
  name: 'd.name',
  image: filled('image'),
  category: 'd.category_ids',
  mission: 'd.mission',
  website: filled('website'),
  twitter: filled('twitter'),
  discord: filled('discord'),
  telegram: filled('telegram'),
  whitepaper: filled('whitepaper'),
  tokenomics: 'd.tokenomics',
  chain: 'd.chain_ids',
  live: 'd.live',
  createdAt: 'd.created_at',
  updatedAt: 'd.updated_at',
  __v: 'd.changes',
  slug: 'd.slug',
  verified: 'd.verified',
  description: 'd.description',
  isOtc: 'd.is_otc',
  snapshotName: 'd.snapshot_name',
  treasuryAddress: 'd.treasury_addresses',
} as const

/** SQL of the DAOs `d` of the registry. */
export const FROM_DAOS = 'FROM (SELECT * FROM daos FINAL) AS d'
