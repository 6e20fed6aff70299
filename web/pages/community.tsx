import { useAnswer } from '../answers.ts'
import { useStart } from '../clock.ts'
import { type Answer, toQuestion } from '../interface.ts'
import { Card, Stat, Stats } from '../parts/card.tsx'
import { toDrawing } from '../parts/drawing.ts'
import { SeriesChart } from '../parts/series-chart.tsx'
import { isNone, Shown } from '../parts/shown.tsx'
import { Change, Value } from '../parts/value.tsx'

const NO_ACCOUNT = 'No account known, or no data returned.'

type Element<T> = T extends readonly (infer E)[] ? E : never
type TwitterPoint = Element<Answer<'/data/daos/socials/historic-twitter'>>
type DiscordPoint = Element<Answer<'/data/daos/socials/historic-discord'>>
type TelegramPoint = Element<Answer<'/data/daos/socials/historic-telegram'>>
type MoodPoint = Element<Answer<'/data/daos/socials/historic-twitter-sentiment'>>

interface Of {
  readonly name: string
  readonly query: { readonly id: string; readonly start: string; readonly order: 'asc'; readonly fill: 'null' }
}

function Twitter({ name, query }: Of) {
  const question = toQuestion('/data/daos/socials/historic-twitter', { ...query, interval: '1d' })
  const series = useAnswer(question)
  if (isNone(series)) return null
  return (
    <SeriesChart
      title="Twitter followers"
      name={`${name}: Twitter followers, 90 days`}
      question={question}
      series={series}
      toDrawing={(points) =>
        toDrawing<TwitterPoint>(points, {
          as: 'count',
          at: ({ lastUpdated }) => lastUpdated,
          lines: [['followers', ({ followers }) => followers]],
        })
      }
      isLow
    />
  )
}

function Discord({ name, query }: Of) {
  const question = toQuestion('/data/daos/socials/historic-discord', { ...query, interval: '1d' })
  const series = useAnswer(question)
  if (isNone(series)) return null
  return (
    <SeriesChart
      title="Discord members"
      name={`${name}: Discord members, 90 days`}
      question={question}
      series={series}
      toDrawing={(points) =>
        toDrawing<DiscordPoint>(points, {
          as: 'count',
          at: ({ lastUpdated }) => lastUpdated,
          lines: [
            ['members', ({ totalMembers }) => totalMembers],
            ['active', ({ activeMembers }) => activeMembers],
          ],
        })
      }
      isLow
    />
  )
}

function Telegram({ name, query }: Of) {
  const question = toQuestion('/data/daos/socials/historic-telegram', { ...query, interval: '1d' })
  const series = useAnswer(question)
  if (isNone(series)) return null
  return (
    <SeriesChart
      title="Telegram members"
      name={`${name}: Telegram members, 90 days`}
      question={question}
      series={series}
      toDrawing={(points) =>
        toDrawing<TelegramPoint>(points, {
          as: 'count',
          at: ({ recordedAt }) => recordedAt,
          lines: [['members', ({ totalMembers }) => totalMembers]],
        })
      }
      isLow
    />
  )
}

function Mood({ name, query }: Of) {
  const question = toQuestion('/data/daos/socials/historic-twitter-sentiment', { ...query, interval: '1d' })
  const series = useAnswer(question)
  if (isNone(series)) return null
  return (
    <SeriesChart
      title="Sentiment of posts"
      name={`${name}: sentiment on Twitter, 90 days`}
      question={question}
      series={series}
      toDrawing={(points) =>
        toDrawing<MoodPoint>(points, {
          as: 'share',
          at: ({ recordedAt }) => recordedAt,
          lines: [
            ['positive', ({ sentiment }) => sentiment.positive],
            ['negative', ({ sentiment }) => sentiment.negative],
            ['neutral', ({ sentiment }) => sentiment.neutral],
          ],
        })
      }
      isLow
    />
  )
}

function Now({ id }: { id: string }) {
  const question = toQuestion('/data/daos/socials', { id: [id] })
  const socials = useAnswer(question)
  const empty = 'No account of this DAO is collected.'
  return (
    <Card title="Community" question={question} facts={socials.received?.facts}>
      <Shown of={socials} what="the community" isEmpty={(data) => data.length === 0} empty={empty}>
        {([record]) =>
          record !== undefined && (
            <Stats>
              <Stat name="Twitter followers">
                <Value of={record.twitterData.followers} as="count" why={NO_ACCOUNT} />
              </Stat>
              <Stat name="Change, 30 days">
                <Change of={record.twitterData.percentChange30d} />
              </Stat>
              <Stat name="Tweets">
                <Value of={record.twitterData.tweets} as="count" why={NO_ACCOUNT} />
              </Stat>
              <Stat name="Discord members">
                <Value of={record.discordData.totalMembers} as="count" why={NO_ACCOUNT} />
              </Stat>
              <Stat name="Active on Discord">
                <Value of={record.discordData.activeMembers} as="count" why={NO_ACCOUNT} />
              </Stat>
            </Stats>
          )
        }
      </Shown>
    </Card>
  )
}

/** The Twitter followers of a DAO over 90 days. */
export function TwitterFollowers({ id, name }: { id: string; name: string }) {
  return <Twitter name={name} query={{ id, start: useStart('90d', '1d'), order: 'asc', fill: 'null' }} />
}

/** Followers and sentiment of a DAO, now and over 90 days. */
export function Community({ id, name }: { id: string; name: string }) {
  const start = useStart('90d', '1d')
  const query = { id, start, order: 'asc', fill: 'null' } as const
  return (
    <>
      <Now id={id} />
      <div class="grid">
        <Twitter name={name} query={query} />
        <Mood name={name} query={query} />
        <Discord name={name} query={query} />
        <Telegram name={name} query={query} />
      </div>
    </>
  )
}
