import type { Answer } from '../interface.ts'
import { Mark, Sparkline } from '../parts/mark.tsx'
import type { Column } from '../parts/record-table.tsx'
import { Change, Unknown, Value } from '../parts/value.tsx'

const named = (id: string, name: string) => (
  <a class="named" href={`daos/${id}`}>
    <Mark id={id} />
    {name}
  </a>
)

const NAME = { title: 'DAO', member: 'name', cell: (dao: { _id: string; name: string }) => named(dao._id, dao.name) }

type Treasury = Answer<'/data/daos/treasury'>[number]
const toTreasuryChange = (title: string, member: 'percentChange24h' | 'percentChange7d' | 'percentChange30d') => ({
  title,
  member: `treasuryData.${member}`,
  isNumber: true,
  cell: ({ treasuryData }: Treasury) => <Change of={treasuryData[member]} />,
})
export const TREASURY: readonly Column<Treasury>[] = [
  NAME,
  {
    title: 'Treasury',
    member: 'treasuryData.valueUsd',
    isNumber: true,
    cell: ({ treasuryData }) => <Value of={treasuryData.valueUsd} as="usd" />,
  },
  toTreasuryChange('24 h', 'percentChange24h'),
  toTreasuryChange('7 d', 'percentChange7d'),
  toTreasuryChange('30 d', 'percentChange30d'),
  {
    title: 'Assets',
    isNumber: true,
    cell: ({ treasuryData }) => <Value of={treasuryData.tokens.length} as="count" />,
  },
]

type Socials = Answer<'/data/daos/socials'>[number]
const NO_ACCOUNT = 'It has no such account that we know of, or the provider has not told.'
export const COMMUNITY: readonly Column<Socials>[] = [
  NAME,
  {
    title: 'Twitter followers',
    member: 'twitterData.followers',
    isNumber: true,
    cell: ({ twitterData }) => <Value of={twitterData.followers} as="count" why={NO_ACCOUNT} />,
  },
  {
    title: '30 d',
    member: 'twitterData.percentChange30d',
    isNumber: true,
    cell: ({ twitterData }) => <Change of={twitterData.percentChange30d} />,
  },
  {
    title: 'Discord members',
    member: 'discordData.totalMembers',
    isNumber: true,
    cell: ({ discordData }) => <Value of={discordData.totalMembers} as="count" why={NO_ACCOUNT} />,
  },
  {
    title: 'Active there',
    member: 'discordData.activeMembers',
    isNumber: true,
    cell: ({ discordData }) => <Value of={discordData.activeMembers} as="count" why={NO_ACCOUNT} />,
  },
]

type Rating = Answer<'/data/daos/ratings'>[number]
const toRating = (title: string, member: keyof Rating['ratings']['fundamentals']): Column<Rating> => ({
  title,
  member: `ratings.fundamentals.${member}`,
  isNumber: true,
  cell: ({ ratings }) => <Value of={ratings.fundamentals[member]} as="amount" />,
})
export const RATINGS: readonly Column<Rating>[] = [
  NAME,
  {
    title: 'Rating',
    member: 'ratings.overallRating',
    isNumber: true,
    cell: ({ ratings }) => <Value of={ratings.overallRating} as="amount" />,
  },
  toRating('Governance', 'governance'),
  toRating('Team', 'team'),
  toRating('Moat', 'competitiveMoat'),
  toRating('Proposition', 'valueProposition'),
  toRating('Economics', 'tokenEconomics'),
]

type Dao = Answer<'/data/daos'>[number]
const NO_TOKEN = 'It has no token that we know of.'
export const ALL: readonly Column<Dao>[] = [
  NAME,
  {
    title: 'Token',
    member: 'token.symbol',
    cell: ({ token }) =>
      token === null ? <Unknown why={NO_TOKEN} /> : <a href={`tokens/${token._id}`}>{token.symbol}</a>,
  },
  {
    title: 'Token, last 24 h',
    cell: ({ token }) => (token === null ? <Unknown why={NO_TOKEN} /> : <Sparkline id={token._id} name={token.name} />),
  },
  {
    title: 'Mission',
    isText: true,
    cell: ({ mission }) => (mission === '' ? <Unknown /> : <span class="text">{mission}</span>),
  },
]
