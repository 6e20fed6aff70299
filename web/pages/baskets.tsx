import { useState } from 'preact/hooks'
import { type AnswerState, useAnswer } from '../answers.ts'
import { toDay, toUtc } from '../format.ts'
import { type Answer, toQuestion } from '../interface.ts'
import { isDemo } from '../mode.ts'
import { Card } from '../parts/card.tsx'
import { toDrawing } from '../parts/drawing.ts'
import { useMargins } from '../parts/margins.ts'
import { Failed, Shown } from '../parts/shown.tsx'
import { go, query, toAbsolute, withQuery } from '../place.ts'
import { BasketForm, isOfForm } from './basket-form.tsx'
import { Holdings, Irregularities, Rebalances, Statistics } from './basket-report.tsx'
import { type BasketReport, describeRule, partsOf, type Rule, ruleOf, toReportQuestion } from './basket-rule.ts'
import { Overlay, toOverlayLine } from './overlay.tsx'
import '../styles/baskets.css'

const DAY_MS = 86_400_000
/** The start of a time's day: the first points of a day have different times. */
const toDayStart = (time: string) => `${time.slice(0, 10)}T00:00:00Z`

type Points = Answer<'/data/baskets/historic'>
const toValues = (points: Points) =>
  toDrawing<Points[number]>(points, {
    as: 'amount',
    at: ({ recordedAt }) => recordedAt,
    lines: [['value', ({ nav }) => nav]],
  })

type IndexPoints = Answer<'/data/index/historic'>
const toIndex = (points: IndexPoints) =>
  toDrawing<IndexPoints[number]>(points, {
    as: 'usd',
    at: ({ createdAt }) => toDayStart(createdAt),
    lines: [['value', ({ valueUsd }) => valueUsd]],
  })

type Prices = Answer<'/data/tokens/historic-financial'>
const toPrices = ({ data }: Prices) =>
  toDrawing<Prices['data'][number]>(data, {
    as: 'usd',
    at: ({ timestamp }) => toDayStart(timestamp),
    lines: [['price', ({ quote }) => quote.USD.price]],
  })

/** Lines of single tokens beside the basket and the Index. */
const MOST_BESIDE = 4

const besideOf = () => (query.value.get('with') ?? '').split(',').filter((id) => /^[0-9a-f]{24}$/.test(id))

/** Adds and removes lines of single tokens. */
function Beside({ ids, held }: { ids: readonly string[]; held: readonly { token: string; symbol: string }[] }) {
  const nameOf = (id: string) => held.find(({ token }) => token === id)?.symbol ?? id
  const select = (next: readonly string[]) => go(withQuery({ with: next.join(',') }), { replaces: true })
  const others = held.filter(({ token }) => !ids.includes(token))
  return (
    <div class="choices">
      <div class="filters">
        {ids.length < MOST_BESIDE && others.length > 0 && (
          <label>
            Compare with
            <select value="" onChange={({ currentTarget }) => select([...ids, currentTarget.value])}>
              <option value="">a token</option>
              {others.map(({ token, symbol }) => (
                <option key={token} value={token}>
                  {symbol}
                </option>
              ))}
            </select>
          </label>
        )}
      </div>
      <ul class="compared" aria-label="Single tokens">
        {ids.map((id) => (
          <li key={id}>
            {nameOf(id)}{' '}
            <button
              type="button"
              class="plain"
              aria-label={`Remove ${nameOf(id)}`}
              onClick={() => select(ids.filter((one) => one !== id))}
            >
              ×
            </button>
          </li>
        ))}
      </ul>
    </div>
  )
}

/** Tokens that the basket holds at some time, the newest ones first. */
function toHeld({ rebalances }: BasketReport): readonly { token: string; symbol: string }[] {
  const all = rebalances.toReversed().flatMap(({ members }) => members)
  return [...new Map(all.map(({ token, symbol }) => [token, { token, symbol }])).values()]
}

/** The value of the basket beside the Index and single tokens, all from 100. */
function Curve({ of, rule }: { of: BasketReport; rule: Rule }) {
  const { start } = of
  const end = new Date(Date.parse(of.end) + DAY_MS).toISOString()
  const held = toHeld(of)
  const beside = besideOf()
  const range = { start, end, interval: '1d', fill: 'null' } as const
  const lines = [
    toOverlayLine('Basket', toQuestion('/data/baskets/historic', rule), toValues),
    toOverlayLine('Index', toQuestion('/data/index/historic', { ...range, order: 'asc' }), toIndex),
    ...beside.map((id) => {
      const name = held.find(({ token }) => token === id)?.symbol ?? id
      return toOverlayLine(name, toQuestion('/data/tokens/historic-financial', { id, ...range }), toPrices)
    }),
  ]
  const entered = Object.fromEntries([...query.value].filter(([name]) => name !== 'trades'))
  return (
    <Overlay
      title="Basket and Index"
      lines={lines}
      range={`${toDay(new Date(start))} to ${toDay(new Date(of.end))}, start = 100`}
      isFromHundred
      controls={<Beside ids={beside} held={held} />}
      embedding={{ path: 'baskets', query: entered }}
    />
  )
}

/** The names of the named tokens: ended ones are not listed, and the report has their symbols. */
function useNames(report: BasketReport | undefined): (token: string) => string {
  const ids = partsOf()
    .map(({ token }) => token)
    .filter((token) => /^[0-9a-f]{24}$/.test(token))
  const question = ids.length > 0 ? toQuestion('/data/tokens', { id: ids, limit: ids.length }) : undefined
  const listed = useAnswer(question).received?.data ?? []
  const candidates = report?.rebalances.flatMap(({ members, excluded }) => [...members, ...excluded]) ?? []
  return (id) =>
    listed.find(({ _id }) => _id === id)?.symbol ?? candidates.find(({ token }) => token === id)?.symbol ?? id
}

/** The name of a category or chain; its slug until the names are known, and an empty text without one. */
function useNameOf(path: '/data/categories' | '/data/chains', slug: string | null): string {
  const records: readonly { slug: string; name: string }[] = useAnswer(toQuestion(path, {})).received?.data ?? []
  return records.find((one) => one.slug === slug)?.name ?? slug ?? ''
}

const NOTHING_YET = 'Add a token: type its name or symbol above.'

/** The answer for the rule in the address. */
function useReport(rule: Rule | undefined): AnswerState<BasketReport> {
  return useAnswer(rule === undefined ? undefined : toReportQuestion(rule))
}

function Report({ report, rule }: { report: AnswerState<BasketReport>; rule: Rule }) {
  return (
    <Shown of={report} what="the back-test">
      {(data) => (
        <div class="column">
          <Curve of={data} rule={rule} />
          <Statistics of={data} rule={rule} />
          <Rebalances of={data} rule={rule} />
          <Holdings of={data} rule={rule} />
          <Irregularities of={data} rule={rule} />
        </div>
      )}
    </Shown>
  )
}

/** The curve alone, for a page of another site. */
export function EmbeddedBasket() {
  const rule = ruleOf()
  const report = useReport(rule)
  if (rule === undefined) return <p class="state empty">The address has no basket.</p>
  return (
    <Shown of={report} what="the back-test">
      {(data) => <Curve of={data} rule={rule} />}
    </Shown>
  )
}

/** An own basket: its rule, its value beside the Index, and the report of its back-test. */
export function BasketsPage() {
  const rule = ruleOf()
  const report = useReport(rule)
  const { failure } = report
  const data = report.received?.data
  const [opened] = useState(() => toUtc(new Date()))
  const address = toAbsolute(withQuery({}))
  useMargins(isDemo ? `${address} (demo, all numbers are simulated)` : address, opened)
  const about = {
    category: useNameOf('/data/categories', query.value.get('category')),
    chain: useNameOf('/data/chains', query.value.get('chain')),
  }
  return (
    <div class="column report">
      <div class="about">
        <h1>Baskets</h1>
        <p>
          Your own index over DAO tokens, tested with what was known on each day. This address holds the whole rule.
        </p>
        {data !== undefined && failure === undefined && (
          <p class="links">
            <span>
              {describeRule(data, about)} {toDay(new Date(data.start))} to {toDay(new Date(data.end))}.
            </span>
            <button type="button" onClick={() => print()}>
              Print or save as PDF
            </button>
          </p>
        )}
      </div>
      <Card title="Rule">
        <BasketForm failure={failure} nameOf={useNames(data)} />
        {failure !== undefined && !isOfForm(failure) && <Failed failure={failure} retry={report.retry} />}
      </Card>
      {rule === undefined ? (
        <p class="state empty">{NOTHING_YET}</p>
      ) : (
        failure === undefined && <Report report={report} rule={rule} />
      )}
    </div>
  )
}
