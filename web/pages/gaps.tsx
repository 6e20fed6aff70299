import { useMemo } from 'preact/hooks'
import { isGap } from '../../shared/coverage-gap.ts'
import { useAnswer } from '../answers.ts'
import { useStart } from '../clock.ts'
import { DATASET_TITLES } from '../declared.ts'
import { toCounted, toShort, toUtc } from '../format.ts'
import { type Answer, type Query, toQuestion } from '../interface.ts'
import { Card } from '../parts/card.tsx'
import { Choice, chosen } from '../parts/choice.tsx'
import type { ChartEvent } from '../parts/drawing.ts'
import { RecordTable } from '../parts/record-table.tsx'
import { Shown } from '../parts/shown.tsx'
import { TimeValue, Unknown } from '../parts/value.tsx'
import { go, withQuery } from '../place.ts'
import type { Range } from '../ranges.ts'

type Named = Query<'/data/status/coverage'>['dataset']
type Stretch = Answer<'/data/status/coverage'>[number]

/** The datasets with coverage. */
const TITLES: Readonly<Record<Named, string>> = DATASET_TITLES
const COVERED = Object.keys(TITLES) as Named[]

/** The title of a dataset; its name if it has no title. */
export const titleOfDataset = (name: string) => (TITLES as Readonly<Record<string, string>>)[name] ?? name

/** Maximum rows of gaps, and of names in one request; the linked request has all. */
const MOST_GAPS = 100

/** The service rejects a range with too many entries; a shorter one has fewer. */
const RANGES = ['30d', '7d', '24h'] as const
const RANGE_TEXTS = { '30d': '30 days', '7d': '7 days', '24h': '24 hours' } as const

const OF_TOKENS: readonly Named[] = ['prices', 'tvl', 'holders', 'dex-trades']
const OF_ALL: readonly Named[] = ['market-cap', 'treasury-value', 'index', 'index-token']

/** The states of gaps in words; a state without words has its own name. */
const STATE_TEXTS: Readonly<Record<string, string>> = {
  coarser: 'coarser data only',
  pending: 'not collected yet',
  failed: 'failed, is retried',
  unserved: 'no provider has it',
}

/** The token or DAO of a gap. */
function Entity({ dataset, id, names }: { dataset: Named; id: string; names: ReadonlyMap<string, string> }) {
  if (OF_ALL.includes(dataset)) return <>all</>
  const kind = OF_TOKENS.includes(dataset) ? 'tokens' : 'daos'
  const name = names.get(id)
  // The lists have no record of ended entities, and their pages would be empty.
  return name === undefined ? (
    <span title={id}>
      ended {OF_TOKENS.includes(dataset) ? 'token' : 'DAO'} {toShort(id)}
    </span>
  ) : (
    <a href={`${kind}/${id}`}>{name}</a>
  )
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

/** Maximum changes of history in one request. */
const MOST_CHANGES = 200

/** The gaps of an entity's data, and its filled or corrected history, as events of a chart; empty without an id. */
export function useDataMarks(
  dataset: Named,
  id: string | undefined,
  { start, range }: { readonly start: string; readonly range: Range },
): readonly ChartEvent[] {
  const coverage = useAnswer(
    id === undefined ? undefined : toQuestion('/data/status/coverage', { dataset, id, start }, range),
  ).received?.data
  const changes = useAnswer(
    id === undefined ? undefined : toQuestion('/data/changes', { dataset, id, limit: MOST_CHANGES }),
  ).received?.data
  return useMemo(() => {
    const toRange = ({ from, to }: { from: string; to: string }) => ({
      ...{ time: Date.parse(from) / 1000, until: Date.parse(to) / 1000 },
    })
    const end = ({ to }: { to: string }) => toUtc(new Date(to))
    // Coarser data is drawn, so it is no gap there.
    const gaps = (coverage ?? []).filter((one) => isGap(one) && one.state !== 'coarser')
    return [
      ...gaps.map((one) => ({
        ...{ ...toRange(one), mark: 'gap' as const, to: `freshness?dataset=${dataset}` },
        text: `No data until ${end(one)}: ${one.reason ?? one.state}`,
      })),
      ...(changes ?? []).map((one) => ({
        ...{ ...toRange(one), mark: 'change' as const },
        text: `Filled or corrected until ${end(one)}, stored ${toUtc(new Date(one.at))}`,
      })),
    ]
  }, [coverage, changes, dataset])
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
              <option key={name} value={name}>
                {TITLES[name]}
              </option>
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
              caption={`Gaps of ${TITLES[dataset]}`}
              records={gaps}
              keyOf={({ entity, from }) => `${entity} ${from}`}
              columns={[
                {
                  title: OF_TOKENS.includes(dataset) ? 'Token' : 'DAO',
                  cell: ({ entity }) => <Entity dataset={dataset} id={entity} names={names} />,
                },
                { title: 'State', cell: ({ state }) => STATE_TEXTS[state] ?? state },
                { title: 'From', cell: ({ from }) => <TimeValue at={from} /> },
                { title: 'To', cell: ({ to }) => <TimeValue at={to} /> },
                {
                  title: 'Reason',
                  isText: true,
                  cell: ({ reason }) => reason ?? <Unknown why="No reason is stored." />,
                },
              ]}
            />
            <p class="note">
              {toCounted(data.filter(isGap).length, 'gap')};{' '}
              {toCounted(data.filter(({ state }) => state === 'covered').length, 'range')} complete.
              {data.filter(isGap).length > MOST_GAPS && ` The first ${MOST_GAPS} are shown.`}
            </p>
          </>
        )}
      </Shown>
    </Card>
  )
}
