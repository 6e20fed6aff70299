import type { Answer } from '../interface.ts'
import type { ListColumn } from '../parts/columns.tsx'
import { Mark, Sparkline } from '../parts/mark.tsx'
import { Change, TimeValue, Unknown, Value } from '../parts/value.tsx'

const named = (id: string, name: string) => (
  <a class="named" href={`daos/${id}`}>
    <Mark id={id} />
    <span title={name}>{name}</span>
  </a>
)

export const NAME = {
  id: 'name',
  title: 'DAO',
  member: 'name',
  cell: ({ _id, name }: { _id: string; name: string }) => named(_id, name),
}
const extra = <T,>(column: ListColumn<T>): ListColumn<T> => ({ ...column, isExtra: true })

type Treasury = Answer<'/data/daos/treasury'>[number]
const toTreasuryChange = (
  title: string,
  id: 'percentChange24h' | 'percentChange7d' | 'percentChange30d',
): ListColumn<Treasury> => ({
  id,
  title,
  name: `Change in ${title}`,
  member: `treasuryData.${id}`,
  isNumber: true,
  cell: ({ treasuryData }) => <Change of={treasuryData[id]} />,
})
export const TREASURY: readonly ListColumn<Treasury>[] = [
  NAME,
  {
    id: 'valueUsd',
    title: 'Treasury',
    member: 'treasuryData.valueUsd',
    isNumber: true,
    cell: ({ treasuryData }) => <Value of={treasuryData.valueUsd} as="usd" />,
  },
  toTreasuryChange('24 h', 'percentChange24h'),
  toTreasuryChange('7 d', 'percentChange7d'),
  toTreasuryChange('30 d', 'percentChange30d'),
  {
    id: 'assets',
    title: 'Assets',
    of: ['treasuryData'],
    isNumber: true,
    cell: ({ treasuryData }) => <Value of={treasuryData.tokens.length} as="count" />,
  },
  extra({
    id: 'updated',
    title: 'Updated',
    of: ['treasuryData'],
    cell: ({ treasuryData }) => <TimeValue at={treasuryData.lastUpdated} />,
  }),
]

type Socials = Answer<'/data/daos/socials'>[number]
const NO_ACCOUNT = 'No account known, or no data returned.'
const onTwitter = (title: string, id: 'followers' | 'following' | 'tweets'): ListColumn<Socials> => ({
  id,
  title,
  member: `twitterData.${id}`,
  isNumber: true,
  cell: ({ twitterData }) => <Value of={twitterData[id]} as="count" why={NO_ACCOUNT} />,
})
const toFollowersChange = (
  title: string,
  id: 'percentChange24h' | 'percentChange7d' | 'percentChange30d',
): ListColumn<Socials> => ({
  id,
  title,
  name: `Change of the followers in ${title}`,
  member: `twitterData.${id}`,
  isNumber: true,
  cell: ({ twitterData }) => <Change of={twitterData[id]} />,
})
const onDiscord = (title: string, id: 'totalMembers' | 'activeMembers', name: string): ListColumn<Socials> => ({
  id,
  title,
  name,
  member: `discordData.${id}`,
  isNumber: true,
  cell: ({ discordData }) => <Value of={discordData[id]} as="count" why={NO_ACCOUNT} />,
})
export const COMMUNITY: readonly ListColumn<Socials>[] = [
  NAME,
  onTwitter('Followers', 'followers'),
  extra(toFollowersChange('24 h', 'percentChange24h')),
  extra(toFollowersChange('7 d', 'percentChange7d')),
  toFollowersChange('30 d', 'percentChange30d'),
  extra(onTwitter('Following', 'following')),
  extra(onTwitter('Tweets', 'tweets')),
  onDiscord('Discord', 'totalMembers', 'Members on Discord'),
  onDiscord('Active', 'activeMembers', 'Active on Discord'),
]

type Rating = Answer<'/data/daos/ratings'>[number]
const toRating = (title: string, id: keyof Rating['ratings']['fundamentals']): ListColumn<Rating> => ({
  id,
  title,
  member: `ratings.fundamentals.${id}`,
  isNumber: true,
  cell: ({ ratings }) => <Value of={ratings.fundamentals[id]} as="amount" />,
})
export const RATINGS: readonly ListColumn<Rating>[] = [
  NAME,
  {
    id: 'overallRating',
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
/** The host name of a website; the unchanged text if it is no URL. */
const toHost = (url: string) => (URL.canParse(url) ? new URL(url).host : url)
const NO_TOKEN = 'No token known.'
export const ALL: readonly ListColumn<Dao>[] = [
  NAME,
  {
    id: 'token',
    title: 'Token',
    member: 'token.symbol',
    cell: ({ token }) =>
      token === null ? <Unknown why={NO_TOKEN} /> : <a href={`tokens/${token._id}`}>{token.symbol}</a>,
  },
  {
    id: 'day',
    title: 'Token, last 24 h',
    of: ['token'],
    cell: ({ token }) => (token === null ? <Unknown why={NO_TOKEN} /> : <Sparkline id={token._id} name={token.name} />),
  },
  {
    id: 'mission',
    title: 'Mission',
    of: ['mission'],
    isText: true,
    cell: ({ mission }) => (mission === '' ? <Unknown /> : <span class="text">{mission}</span>),
  },
  extra({
    id: 'space',
    title: 'Snapshot space',
    of: ['snapshotName'],
    cell: ({ snapshotName }) => snapshotName ?? <Unknown why="No Snapshot space known." />,
  }),
  extra({
    id: 'website',
    title: 'Website',
    of: ['website'],
    cell: ({ website }) => (website === null ? <Unknown /> : toHost(website)),
  }),
]

type Summary = Answer<'/data/daos/governance/summary'>[number]
const toSummaryCount = (
  title: string,
  id: 'proposals' | 'activeProposals' | 'votes30d',
  name?: string,
): ListColumn<Summary> => ({
  id,
  title,
  ...(name === undefined ? {} : { name }),
  member: id,
  isNumber: true,
  cell: (record) => <Value of={record[id]} as="count" />,
})
export const GOVERNANCE: readonly ListColumn<Summary>[] = [
  NAME,
  toSummaryCount('Votes, 30 d', 'votes30d'),
  toSummaryCount('Active', 'activeProposals', 'Active proposals'),
  toSummaryCount('Proposals', 'proposals'),
  {
    id: 'votes',
    title: 'Votes',
    member: 'votes.count',
    isNumber: true,
    cell: ({ votes }) => <Value of={votes.count} as="count" />,
  },
  {
    id: 'voters',
    title: 'Voters',
    member: 'votes.uniqueAddressesCount',
    isNumber: true,
    of: ['votes'],
    cell: ({ votes }) => <Value of={votes.uniqueAddressesCount} as="count" />,
  },
  {
    id: 'last',
    title: 'Newest proposal',
    member: 'lastProposalAt',
    cell: ({ lastProposalAt }) => <TimeValue at={lastProposalAt} why="No proposals." />,
  },
]
