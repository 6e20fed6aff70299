import { type ComponentChildren, render } from 'preact'
import type { AnswerState, Failure, ReceivedAnswer } from '../answers.ts'
import { Card, Stat, Stats } from '../parts/card.tsx'
import { Chart } from '../parts/chart.tsx'
import { Choice } from '../parts/choice.tsx'
import { type Drawing, toConcentration } from '../parts/drawing.ts'
import { HeatMap } from '../parts/heat-map.tsx'
import { NotLoaded } from '../parts/late.tsx'
import { RecordTable } from '../parts/record-table.tsx'
import { Shown } from '../parts/shown.tsx'
import { type Cell, Treemap } from '../parts/treemap.tsx'
import { Ago, Change, TimeValue, Until, Value } from '../parts/value.tsx'
import '../styles/shell.css'
import '../styles/parts.css'
import '../styles/chart.css'

const DAY = 86_400
/** A Monday: pictures of this page have fixed times. */
const START = Date.UTC(2026, 2, 2) / 1000
const AS_OF = new Date((START + 30 * DAY) * 1000)

const FACTS: ReceivedAnswer<unknown>['facts'] = {
  ...{ asOf: AS_OF, isStale: false, total: undefined, next: undefined, interval: '1d', points: 30 },
  ...{ missing: 0, coarse: undefined, tag: undefined, requestId: undefined },
}
const FAILURE: Failure = {
  ...{ title: 'Temporarily unavailable', detail: 'The database does not answer.', code: 'unavailable' },
  ...{ requestId: '7f3c', retryAt: undefined },
}

const RECORDS = [
  { name: 'First token', price: 10.33, change: 2.16, cap: 9_262_968_643 },
  { name: 'Second token', price: 0.0646, change: -3.75, cap: 1_220_000_000 },
  { name: 'Third token', price: null, change: null, cap: null },
]
type Token = (typeof RECORDS)[number]

const answered = (data: readonly Token[], facts = FACTS): AnswerState<readonly Token[]> => ({
  ...{ received: { data, facts }, failure: undefined, isAsking: false, isBefore: false, retry: () => {} },
})

const WAITING: AnswerState<readonly Token[]> = { ...answered([]), received: undefined, isAsking: true }
const FAILED = { ...WAITING, isAsking: false, failure: FAILURE }

/** The states of an answer, and of the card that shows it. */
const STATES: readonly (readonly [title: string, answer: AnswerState<readonly Token[]>])[] = [
  ['Complete', answered(RECORDS)],
  ['Loading', WAITING],
  ['Loading after a change of the request', { ...answered(RECORDS), isAsking: true, isBefore: true }],
  ['Empty', answered([])],
  ['Stale', answered(RECORDS, { ...FACTS, isStale: true })],
  ['Partial: the newest request failed', { ...answered(RECORDS), failure: FAILURE }],
  ['Error', FAILED],
  ['Not known', { ...FAILED, failure: { ...FAILURE, code: 'no_data', detail: 'No provider has this token.' } }],
]

function Records({ title, of }: { title: string; of: AnswerState<readonly Token[]> }) {
  return (
    <Card title={title} facts={of.received?.facts}>
      <Shown of={of} what="tokens" isEmpty={(data) => data.length === 0} rows={3}>
        {(data) => (
          <RecordTable
            caption={title}
            records={data}
            keyOf={({ name }) => name}
            sorting={{ by: '-price', change: () => {} }}
            columns={[
              { title: 'Token', cell: ({ name }) => <a href="./">{name}</a> },
              { title: 'Price', member: 'price', isNumber: true, cell: ({ price }) => <Value of={price} as="usd" /> },
              { title: '24 h', isNumber: true, cell: ({ change }) => <Change of={change} /> },
              { title: 'Market cap', isNumber: true, cell: ({ cap }) => <Value of={cap} as="usd" /> },
            ]}
          />
        )}
      </Shown>
    </Card>
  )
}

const times = Array.from({ length: 30 }, (_, day) => START + day * DAY)
/** A wave around a value. `part` shifts it. */
const wave = (value: number, part: number) => times.map((_, day) => value * (1 + Math.sin(day / 4 + part) / 5))
const LINE: Drawing = { kind: 'line', as: 'usd', times, lines: [{ name: 'price', values: wave(10, 0) }] }

const [OWN, STABLE] = [wave(300e6, 1), wave(120e6, 2)]
const [OPEN, CLOSE] = [wave(10, 0), wave(10, 0.3)]
const limit = (choose: (...values: number[]) => number, by: number) =>
  times.map((_, day) => choose(OPEN[day] ?? 0, CLOSE[day] ?? 0) * by)

const CHARTS: readonly (readonly [title: string, drawing: Drawing])[] = [
  ['One line', LINE],
  [
    'Several lines',
    { ...LINE, lines: [...LINE.lines, { name: 'other', values: wave(9, 2) }, { name: 'third', values: wave(8, 4) }] },
  ],
  [
    'A gap and events',
    {
      ...LINE,
      lines: [{ name: 'price', values: wave(10, 0).map((value, day) => (day > 9 && day < 15 ? null : value)) }],
      events: [
        { time: START + 10 * DAY, until: START + 15 * DAY, mark: 'gap', text: 'No data until 17 March 2026' },
        { time: START + 20 * DAY, until: START + 22 * DAY, mark: 'change', text: 'Corrected until 24 March 2026' },
        { time: START + 24 * DAY, text: 'Vote ended: budget' },
      ],
    },
  ],
  [
    'Stacked areas',
    {
      ...{ kind: 'stack', as: 'usd', times },
      lines: [
        { name: 'all', values: OWN.map((own, day) => own + (STABLE[day] ?? 0)) },
        { name: 'own token', values: OWN },
        { name: 'stablecoins', values: STABLE },
      ],
    },
  ],
  ['Bars', { kind: 'bars', as: 'usd', times, lines: [{ name: 'volume', values: wave(5e6, 3) }] }],
  [
    'Income and spending',
    {
      ...{ kind: 'flows', as: 'usd', times },
      lines: [
        { name: 'income', values: wave(5e6, 3) },
        { name: 'spending', values: wave(4e6, 1).map((value) => -value) },
        { name: 'net', values: wave(5e6, 3).map((value, day) => value - (wave(4e6, 1)[day] ?? 0)) },
      ],
    },
  ],
  [
    'Candles',
    {
      ...{ kind: 'candles', as: 'usd', times },
      lines: [
        { name: 'open', values: OPEN },
        { name: 'high', values: limit(Math.max, 1.03) },
        { name: 'low', values: limit(Math.min, 0.97) },
        { name: 'close', values: CLOSE },
      ],
    },
  ],
  [
    'Concentration',
    toConcentration([40, 21, 12, 7, 5, 3, 2, 1.5, 1, 0.5], { name: 'share of the supply', as: 'percent' }),
  ],
  ['One point', { ...LINE, times: times.slice(0, 1), lines: [{ name: 'price', values: [10] }] }],
  ['No points', { ...LINE, times: [], lines: [{ name: 'price', values: [] }] }],
]

const CELLS: readonly Cell[] = [
  ['First DAO', 2.1e9, [0.6, 0.3, 0.1]],
  ['Second DAO', 9e8, [0.1, 0.2, 0.7]],
  ['Parts not known', 4e8, undefined],
  ['A treasury with a name that is longer than its cell', 1.2e8, [0, 1, 0]],
  ['Fifth DAO', 8e7, [0.4, 0, 0.6]],
  ...Array.from({ length: 12 }, (_, at) => [`Small ${at + 1}`, 9e6, [1, 0, 0]] as const),
  ['Value not known', null, undefined],
].map(([name, value, shares]) => ({ ...{ key: name, name, to: './', value, shares } }) as Cell)
const PARTS = ['own token', 'stablecoins', 'other']

const CHANGES = [
  { name: 'First token', day: 2.16, month: -31.4 },
  { name: 'Second token', day: -3.75, month: 12.5 },
  { name: 'Third token', day: 14.2, month: 120.3 },
  { name: 'Fourth token', day: 0, month: -0.001 },
  { name: 'Fifth token', day: -22.1, month: null },
]

const Part = ({ title, children }: { title: string; children: ComponentChildren }) => (
  <>
    <h2>{title}</h2>
    {children}
  </>
)

/** Every component of the page in every state, without requests. */
function Gallery() {
  return (
    <main class="column">
      <h1>Components</h1>
      <Part title="Numbers">
        <Card title="Known, loading, unknown">
          <Stats>
            <Stat name="Value">
              <Value of={542_780_000} as="usd" /> <Change of={2.88} />
            </Stat>
            <Stat name="Fall">
              <Value of={11.59} as="usd" /> <Change of={-1.74} />
            </Stat>
            <Stat name="No change">
              <Value of={39} as="count" /> <Change of={0} />
            </Stat>
            <Stat name="Share">
              <Value of={0.2428} as="share" />
            </Stat>
            <Stat name="Loading" isLoading>
              {null}
            </Stat>
            <Stat name="Unknown">
              <Value of={null} as="usd" />
            </Stat>
            <Stat name="Time">
              <TimeValue at={AS_OF} />
            </Stat>
            <Stat name="Age">
              <Ago at={AS_OF} />
            </Stat>
            <Stat name="Deadline">
              <Until at={new Date(AS_OF.getTime() + 2 * DAY * 1000)} />
            </Stat>
          </Stats>
        </Card>
      </Part>
      <Part title="Choices and states">
        <Card title="Choice">
          <Choice
            name="range"
            label="Range"
            value="7d"
            options={[
              { value: '24h', text: '24 hours' },
              { value: '7d', text: '7 days' },
              { value: 'all', text: 'All', isOff: true },
            ]}
          />
          <p class="links">
            {['active', 'closed', 'pending', 'unsettled', 'fresh', 'late', 'stale', 'incomplete'].map((state) => (
              <span key={state} class={`badge ${state}`}>
                {state}
              </span>
            ))}
          </p>
        </Card>
      </Part>
      <Part title="Tables and cards">
        <div class="grid">
          {STATES.map(([title, of]) => (
            <Records key={title} title={title} of={of} />
          ))}
        </div>
      </Part>
      <Part title="Charts">
        <div class="grid">
          <Card title="Treemap">
            <Treemap name="Treasuries by value" cells={CELLS} as="usd" parts={PARTS} />
          </Card>
          <Card title="Treemap without values">
            <Treemap name="Treasuries by value" cells={CELLS.slice(-1)} as="usd" parts={PARTS} />
          </Card>
          <Card title="Code not loaded">
            <NotLoaded what="chart" why="the request failed" />
          </Card>
          <Card title="Heat map">
            <HeatMap
              caption="Changes"
              records={CHANGES}
              keyOf={({ name }) => name}
              title="Token"
              cell={({ name }) => <a href="./">{name}</a>}
              columns={[
                { title: '24 h', days: 1, value: ({ day }) => day },
                { title: '30 d', days: 30, value: ({ month }) => month },
              ]}
            />
          </Card>
          {CHARTS.map(([title, drawing]) => (
            <Card key={title} title={title}>
              <Chart name={title} drawing={drawing} isLow />
            </Card>
          ))}
        </div>
      </Part>
    </main>
  )
}

const root = document.getElementById('app')
if (root === null) throw new Error('the document has no place for the components')
render(<Gallery />, root)
