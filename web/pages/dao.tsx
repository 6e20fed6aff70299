import { useAnswer } from '../answers.ts'
import { type Answer, toQuestion } from '../interface.ts'
import { Card, Stat, Stats } from '../parts/card.tsx'
import { chosen } from '../parts/choice.tsx'
import { Mark, Sparkline } from '../parts/mark.tsx'
import { Shown } from '../parts/shown.tsx'
import { useTitle } from '../parts/title.ts'
import { Change, TimeValue, Unknown, Value } from '../parts/value.tsx'
import { withQuery } from '../place.ts'
import { Community, TwitterFollowers } from './community.tsx'
import { Fees, FeesHistory } from './fees.tsx'
import { Governance } from './governance.tsx'
import { Proposals } from './proposals.tsx'
import { Report } from './report.tsx'
import { Treasury, TreasuryHistory } from './treasury.tsx'

type Dao = Answer<'/data/daos'>[number]

function Links({ dao }: { dao: Dao }) {
  const links = [
    ['Website', dao.website],
    ['Twitter', dao.twitter],
    ['Discord', dao.discord],
    ['Telegram', dao.telegram],
    ['Whitepaper', dao.whitepaper],
    ['Tokenomics', dao.tokenomics],
  ] as const
  // Only web addresses become links: the provider's text may be anything.
  const isWeb = (url: string) => /^https?:\/\//.test(url)
  return (
    <p class="links">
      {links.map(
        ([text, url]) =>
          url !== null &&
          isWeb(url) && (
            <a key={text} href={url} target="_blank" rel="noreferrer nofollow">
              {text}
            </a>
          ),
      )}
      <a href={`compare?of=daos&ids=${dao._id}`}>Compare</a>
    </p>
  )
}

function Categories({ dao }: { dao: Dao }) {
  const categories = useAnswer(toQuestion('/data/categories', {})).received?.data ?? []
  return (
    <>
      {categories
        .filter(({ _id }) => dao.category.includes(_id))
        .map(({ slug, name }) => (
          <a key={slug} class="badge" href={`daos?about=all&category=${slug}`}>
            {name}
          </a>
        ))}
    </>
  )
}

/** A change with its period; nothing breaks between them. */
const Over = ({ period, of }: { period: string; of: number | null | undefined }) => (
  <span class="over">
    <Change of={of} /> <small>{period}</small>
  </span>
)

/** The numbers that a reader looks for first. Each links to the part of the page with its details. */
function Summary({ dao: { _id: id, token } }: { dao: Dao }) {
  const treasury = useAnswer(toQuestion('/data/daos/treasury/kinds', { id: [id] })).received?.data
  const governance = useAnswer(toQuestion('/data/daos/governance/summary', { id: [id] })).received?.data
  const fees = useAnswer(toQuestion('/data/daos/fees', { id: [id] })).received?.data
  const tokens = useAnswer(token === null ? undefined : toQuestion('/data/tokens', { id: [token._id] })).received?.data
  const [money, votes, earned, price] = [treasury?.[0], governance?.[0], fees?.[0], tokens?.[0]?.financialData]
  return (
    <section class="card summary" aria-label="Summary">
      <Stats>
        <Stat name="Treasury" isLoading={treasury === undefined}>
          <Value of={money?.valueUsd} as="usd" why="No treasury of this DAO is collected." />{' '}
          {money !== undefined && <Over period="30 d" of={money.percentChange30d} />}
        </Stat>
        <Stat name="Without own token" isLoading={treasury === undefined}>
          <Value of={money?.withoutOwnTokenUsd} as="usd" why="Only the total of this treasury is known." />
        </Stat>
        <Stat name="Fees, 30 days" isLoading={fees === undefined}>
          <Value of={earned?.feesData.fees30d} as="usd" why="No fees of this DAO are collected." />
        </Stat>
        <Stat name="Active on Snapshot" isLoading={governance === undefined}>
          <Value of={votes?.activeProposals} as="count" why="No governance of this DAO is collected." />
        </Stat>
        <Stat name="Voters on Snapshot" isLoading={governance === undefined}>
          <Value of={votes?.votes.uniqueAddressesCount} as="count" why="No governance of this DAO is collected." />
        </Stat>
        <Stat name="Token" isLoading={token !== null && tokens === undefined}>
          {token === null ? (
            <Unknown why="No token known." />
          ) : (
            <>
              <a href={`tokens/${token._id}`}>
                {token.symbol} <Value of={price?.price} as="usd" />
              </a>{' '}
              {price !== undefined && <Over period="24 h" of={price.percentChange24h} />}{' '}
              <Sparkline id={token._id} name={token.name} />
            </>
          )}
        </Stat>
      </Stats>
    </section>
  )
}

const RATED = [
  ['Governance', 'governance'],
  ['Team', 'team'],
  ['Competitive moat', 'competitiveMoat'],
  ['Value proposition', 'valueProposition'],
  ['Token economics', 'tokenEconomics'],
] as const

/** The rating. A DAO without a rating has no card. */
function Rating({ id }: { id: string }) {
  const question = toQuestion('/data/daos/ratings', { id: [id] })
  const ratings = useAnswer(question)
  const record = ratings.received?.data[0]
  if (record === undefined && ratings.failure === undefined) return null
  return (
    <Card title="Rating" question={question} facts={ratings.received?.facts}>
      <Shown of={ratings} what="the rating" isEmpty={(data) => data.length === 0} empty="Not rated.">
        {() =>
          record !== undefined && (
            <Stats>
              <Stat name="Overall">
                <Value of={record.ratings.overallRating} as="amount" />
              </Stat>
              {RATED.map(([text, member]) => (
                <Stat key={member} name={text}>
                  <Value of={record.ratings.fundamentals[member]} as="amount" />
                </Stat>
              ))}
              <Stat name="Rated">
                <TimeValue at={record.ratings.lastUpdated} />
              </Stat>
            </Stats>
          )
        }
      </Shown>
    </Card>
  )
}

const PARTS = ['overview', 'treasury', 'governance', 'fees', 'community', 'report'] as const
const PART_TITLES = {
  overview: 'Overview',
  treasury: 'Treasury',
  governance: 'Governance',
  fees: 'Fees and revenue',
  community: 'Community',
  report: 'Report',
} as const

/** A row of links to the parts of a page; the address has the selected one. */
function Tabs({ name, selected }: { name: string; selected: (typeof PARTS)[number] }) {
  return (
    <nav class="tabs" aria-label={`Parts of ${name}`}>
      {PARTS.map((part) => (
        <a
          key={part}
          href={withQuery({ tab: part === 'overview' ? undefined : part })}
          aria-current={part === selected ? 'page' : undefined}
        >
          {PART_TITLES[part]}
        </a>
      ))}
    </nav>
  )
}

function Part({ dao, part }: { dao: Dao; part: (typeof PARTS)[number] }) {
  const { _id: id, name, snapshotName } = dao
  if (part === 'report') return <Report dao={dao} />
  if (part === 'treasury') return <Treasury id={id} name={name} />
  if (part === 'governance') return <Governance id={id} space={snapshotName} />
  if (part === 'fees') return <Fees id={id} name={name} />
  if (part === 'community') return <Community id={id} name={name} />
  return (
    <>
      <div class="grid">
        <TreasuryHistory id={id} name={name} />
        <FeesHistory id={id} name={name} />
        <TwitterFollowers id={id} name={name} />
      </div>
      <Proposals id={id} limit={5} />
      <Rating id={id} />
    </>
  )
}

/** A DAO: its numbers on top, and its parts as tabs. */
export function DaoPage({ id }: { id: string }) {
  const question = toQuestion('/data/daos', { id: [id] })
  const daos = useAnswer(question)
  const part = chosen('tab', PARTS, 'overview')
  useTitle(daos.received?.data)
  return (
    <Shown of={daos} what="the DAO" isEmpty={(data) => data.length === 0} empty="No DAO has this id.">
      {([dao]) =>
        dao !== undefined && (
          <div class="column">
            <div class="about">
              <div class="title">
                <Mark id={dao._id} />
                <h1>{dao.name}</h1>
                <Categories dao={dao} />
              </div>
              <p>{dao.description === '' ? <Unknown why="No source describes it." /> : dao.description}</p>
              <Links dao={dao} />
            </div>
            <Summary dao={dao} />
            <Tabs name={dao.name} selected={part} />
            <Part dao={dao} part={part} />
          </div>
        )
      }
    </Shown>
  )
}
