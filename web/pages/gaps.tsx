import { useMemo } from 'preact/hooks'
import { isGap } from '../../shared/coverage-gap.ts'
import { useAnswer } from '../answers.ts'
import { useStart } from '../clock.ts'
import { DATASET_TITLES } from '../declared.ts'
import { readTimes, toCounted, toShort, toUtc } from '../format.ts'
import { type Answer, type Query, toQuestion } from '../interface.ts'
import { Card } from '../parts/card.tsx'
import { Choice, chosen } from '../parts/choice.tsx'
import type { ChartEvent } from '../parts/drawing.ts'
import { OF_ALL } from '../parts/open-as.tsx'
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

/** Maximum rows of gaps; the linked request has all. */
const MOST_GAPS = 100

/** The service rejects a range with too many entries; a shorter one has fewer. */
const RANGES = ['30d', '7d', '24h'] as const
const RANGE_TEXTS = { '30d': '30 days', '7d': '7 days', '24h': '24 hours' } as const

const OF_TOKENS: readonly Named[] = ['prices', 'tvl', 'holders', 'dex-trades']

/** The states of gaps in words; a state without words has its own name. */
const STATE_TEXTS: Readonly<Record<string, string>> = {
  coarser: 'coarser data only',
  pending: 'not collected yet',
  failed: 'failed, is retried',
  unserved: 'no provider has it',
}

/** The token or DAO of a gap. */
function Entity({ dataset, of: { entity: id, name, live } }: { dataset: Named; of: Stretch }) {
  if (OF_ALL.includes(dataset)) return <>all</>
  const [kind, noun] = OF_TOKENS.includes(dataset) ? ['tokens', 'token'] : ['daos', 'DAO']
  if (live === true) return <a href={`${kind}/${id}`}>{name}</a>
  // An ended entity has no page.
  return (
    <span title={id}>
      {name ?? toShort(id)} <small>(ended {noun})</small>
    </span>
  )
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
    const textOf = (time: string) => toUtc(new Date(time))
    // Coarser data is drawn, so it is no gap there.
    const gaps = (coverage ?? []).filter((one) => isGap(one) && one.state !== 'coarser')
    return [
      ...gaps.map((one) => ({
        ...{ ...toRange(one), mark: 'gap' as const, to: `freshness?dataset=${dataset}` },
        text: `No data until ${textOf(one.to)}: ${readTimes(one.reason ?? one.state)}`,
      })),
      ...(changes ?? []).map((one) => ({
        ...{ ...toRange(one), mark: 'change' as const },
        text: `Values from ${textOf(one.from)} to ${textOf(one.to)} were added or corrected on ${textOf(one.at)}`,
      })),
    ]
  }, [coverage, changes, dataset])
}

export function Gaps() {
  const dataset = chosen<Named>('dataset', COVERED, 'prices')
  const range = chosen('range', RANGES, '30d')
  const start = useStart(range, range === '24h' ? '1h' : '1d')
  const question = toQuestion('/data/status/coverage', { dataset, start, include: ['name'] }, range)
  const coverage = useAnswer(question)
  const gaps = coverage.received?.data.filter(isGap).slice(0, MOST_GAPS) ?? []
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
                  cell: (gap) => <Entity dataset={dataset} of={gap} />,
                },
                { title: 'State', cell: ({ state }) => STATE_TEXTS[state] ?? state },
                { title: 'From', cell: ({ from }) => <TimeValue at={from} /> },
                { title: 'To', cell: ({ to }) => <TimeValue at={to} /> },
                {
                  title: 'Reason',
                  isText: true,
                  cell: ({ reason }) =>
                    (reason === null ? null : readTimes(reason)) ?? <Unknown why="No reason is stored." />,
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
