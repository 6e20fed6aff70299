import { isGap } from '../../shared/coverage/not-due.ts'
import { useAnswer } from '../answers.ts'
import { useStart } from '../clock.ts'
import { type Answer, type Query, toQuestion } from '../interface.ts'
import { Card } from '../parts/card.tsx'
import { Choice, chosen } from '../parts/choice.tsx'
import { RecordTable } from '../parts/record-table.tsx'
import { Shown } from '../parts/shown.tsx'
import { TimeValue, Unknown } from '../parts/value.tsx'
import { go, withQuery } from '../place.ts'

type Named = Query<'/data/status/coverage'>['dataset']
type Stretch = Answer<'/data/status/coverage'>[number]

/** The datasets with coverage: the API's complete list. */
const COVERED = [
  'prices',
  'tvl',
  'holders',
  'daos',
  'treasury',
  'fees',
  'ratings',
  'market-cap',
  'index',
  'index-token',
  'governance',
  'governors',
  'delegations',
  'treasury-value',
  'twitter',
  'discord',
  'telegram',
  'twitter-sentiment',
  'dex-trades',
] as const satisfies readonly Named[]

/** Maximum rows of gaps, and of names in one request; the linked request has all. */
const MOST_GAPS = 100

/** The service rejects a range with too many entries; a shorter one has fewer. */
const RANGES = ['30d', '7d', '24h'] as const
const RANGE_TEXTS = { '30d': '30 days', '7d': '7 days', '24h': '24 hours' } as const

const OF_TOKENS: readonly Named[] = ['prices', 'tvl', 'holders', 'dex-trades']
const OF_ALL: readonly Named[] = ['market-cap', 'treasury-value', 'index', 'index-token']

/** The token or DAO of a gap. */
function Entity({ dataset, id, names }: { dataset: Named; id: string; names: ReadonlyMap<string, string> }) {
  if (OF_ALL.includes(dataset)) return <>all</>
  const kind = OF_TOKENS.includes(dataset) ? 'tokens' : 'daos'
  return <a href={`${kind}/${id}`}>{names.get(id) ?? <code>{id}</code>}</a>
}

/** The names of live entities; the API has no record of others. */
function useNames(dataset: Named, gaps: readonly Stretch[]): ReadonlyMap<string, string> {
  const id = [...new Set(gaps.map(({ entity }) => entity))]
  const query = { id, limit: MOST_GAPS }
  const isComplete = id.length > 0 && !OF_ALL.includes(dataset)
  const ofTokens = isComplete && OF_TOKENS.includes(dataset) ? toQuestion('/data/tokens', query) : undefined
  const ofDaos = isComplete && ofTokens === undefined ? toQuestion('/data/daos', query) : undefined
  const records = [...(useAnswer(ofTokens).received?.data ?? []), ...(useAnswer(ofDaos).received?.data ?? [])]
  return new Map(records.map(({ _id, name }) => [_id, name]))
}

export function Gaps() {
  const dataset = chosen<Named>('dataset', COVERED, 'prices')
  const range = chosen('range', RANGES, '30d')
  const start = useStart(range, range === '24h' ? '1h' : '1d')
  const question = toQuestion('/data/status/coverage', { dataset, start }, range)
  const coverage = useAnswer(question)
  const gaps = coverage.received?.data.filter(isGap).slice(0, MOST_GAPS) ?? []
  const names = useNames(dataset, gaps)
  const choice = (
    <div class="choices">
      <p class="filters">
        <label>
          Dataset
          <select value={dataset} onChange={({ currentTarget }) => go(withQuery({ dataset: currentTarget.value }))}>
            {COVERED.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
      </p>
      <Choice
        name="range"
        label="How far back"
        options={RANGES.map((value) => ({ value, text: RANGE_TEXTS[value] }))}
        value={range}
      />
    </div>
  )
  return (
    <Card title={`Gaps of the last ${RANGE_TEXTS[range]}`} question={question} hasTables={false} controls={choice}>
      <Shown of={coverage} what="gaps" isEmpty={(data) => !data.some(isGap)} empty="Nothing is missing.">
        {(data) => (
          <>
            <RecordTable
              caption={`Gaps of ${dataset}`}
              records={gaps}
              keyOf={({ entity, from }) => `${entity} ${from}`}
              columns={[
                { title: 'Of', cell: ({ entity }) => <Entity dataset={dataset} id={entity} names={names} /> },
                { title: 'State', cell: ({ state }) => state },
                { title: 'From', cell: ({ from }) => <TimeValue at={from} /> },
                { title: 'To', cell: ({ to }) => <TimeValue at={to} /> },
                { title: 'Why', cell: ({ reason }) => reason ?? <Unknown why="No reason was noted." /> },
              ]}
            />
            <p class="note">
              {data.filter(isGap).length} ranges are not covered,{' '}
              {data.filter(({ state }) => state === 'covered').length} are.
              {data.filter(isGap).length > MOST_GAPS && ` The first ${MOST_GAPS} are shown.`}
            </p>
          </>
        )}
      </Shown>
    </Card>
  )
}
