import { useAnswer } from '../answers.ts'
import { type Answer, toQuestion } from '../interface.ts'
import { Card, Stat, Stats } from '../parts/card.tsx'
import { Mark, Sparkline } from '../parts/mark.tsx'
import { Shown } from '../parts/shown.tsx'
import { useTitle } from '../parts/title.ts'
import { TimeValue, Unknown, Value } from '../parts/value.tsx'
import { Community } from './community.tsx'
import { Fees } from './fees.tsx'
import { Governance } from './governance.tsx'
import { Treasury } from './treasury.tsx'

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

function Token({ token }: { token: Dao['token'] }) {
  return (
    <Card title="Token">
      {token === null ? (
        <p class="state empty">It has no token that we know of.</p>
      ) : (
        <p class="title">
          <a class="named" href={`tokens/${token._id}`}>
            <Mark id={token._id} />
            {token.name} <small>{token.symbol}</small>
          </a>
          <Sparkline id={token._id} name={token.name} />
        </p>
      )}
    </Card>
  )
}

const RATED = [
  ['Governance', 'governance'],
  ['Team', 'team'],
  ['Competitive moat', 'competitiveMoat'],
  ['Value proposition', 'valueProposition'],
  ['Token economics', 'tokenEconomics'],
] as const

function Rating({ id }: { id: string }) {
  const question = toQuestion('/data/daos/ratings', { id: [id] })
  const ratings = useAnswer(question)
  return (
    <Card title="Rating" question={question} facts={ratings.received?.facts}>
      <Shown of={ratings} what="the rating" isEmpty={(data) => data.length === 0} empty="Nobody has rated it.">
        {([record]) =>
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

export function DaoPage({ id }: { id: string }) {
  const question = toQuestion('/data/daos', { id: [id] })
  const daos = useAnswer(question)
  useTitle(daos.received?.data)
  return (
    <Shown of={daos} what="the DAO" isEmpty={(data) => data.length === 0} empty="There is no DAO with this id.">
      {([dao], facts) =>
        dao !== undefined && (
          <div class="column">
            <div class="title">
              <Mark id={dao._id} />
              <h1>{dao.name}</h1>
              <Categories dao={dao} />
            </div>
            <Card title="What it is" question={question} facts={facts}>
              <p>{dao.description === '' ? <Unknown why="No source describes it." /> : dao.description}</p>
              <Links dao={dao} />
            </Card>
            <div class="grid">
              <div class="column">
                <Treasury id={id} name={dao.name} />
                <Fees id={id} name={dao.name} />
              </div>
              <div class="column">
                <Token token={dao.token} />
                <Governance id={id} space={dao.snapshotName} />
                <Rating id={id} />
              </div>
            </div>
            <Community id={id} name={dao.name} />
          </div>
        )
      }
    </Shown>
  )
}
