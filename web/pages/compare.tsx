import { useAnswer } from '../answers.ts'
import { useStart } from '../clock.ts'
import { type Answer, toQuestion } from '../interface.ts'
import { AddEntity } from '../parts/add-entity.tsx'
import { Card } from '../parts/card.tsx'
import { Choice, chosen } from '../parts/choice.tsx'
import { usualOf } from '../parts/columns.tsx'
import { toDrawing } from '../parts/drawing.ts'
import { RecordTable } from '../parts/record-table.tsx'
import { Shown } from '../parts/shown.tsx'
import { go, query, withQuery } from '../place.ts'
import type { Range } from '../ranges.ts'
import { TREASURY } from './dao-columns.tsx'
import { NAMELESS, Overlay, type OverlayLine, toOverlayLine } from './overlay.tsx'
import { RangeChoice, useRange } from './price-chart.tsx'
import { COLUMNS } from './token-columns.tsx'

/** Number of distinct line colours. */
const MOST = 6

const KINDS = ['tokens', 'daos'] as const

const idsOf = () =>
  (query.value.get('ids') ?? '')
    .split(',')
    .filter((id) => /^[0-9a-f]{24}$/.test(id))
    .slice(0, MOST)

const withIds = (ids: readonly string[]) => withQuery({ ids: ids.join(',') })

/** A search for further records to compare. */
function Add({ kind, ids }: { kind: (typeof KINDS)[number]; ids: readonly string[] }) {
  if (ids.length >= MOST) return <p class="note">At most {MOST} lines.</p>
  const add = (id: string) => go(withIds([...ids.filter((one) => one !== id), id]))
  return <AddEntity kind={kind === 'tokens' ? 'token' : 'dao'} onAdd={add} />
}

type Prices = Answer<'/data/tokens/historic-financial'>
const toPrice = ({ data }: Prices) =>
  toDrawing<Prices['data'][number]>(data, {
    as: 'usd',
    at: ({ timestamp }) => timestamp,
    lines: [['price', ({ quote }) => quote.USD.price]],
  })

type Treasuries = Answer<'/data/daos/treasury/historic'>
const toTreasury = (points: Treasuries) =>
  toDrawing<Treasuries[number]>(points, {
    as: 'usd',
    at: ({ recordedAt }) => recordedAt,
    lines: [['treasury', ({ valueUsd }) => valueUsd]],
  })

/** The compared records, each with a remove link, also those without data below. */
const Selected = ({ ids, names }: { ids: readonly string[]; names: readonly string[] }) => (
  <ul class="compared">
    {ids.map((id, index) => (
      <li key={id}>
        {names[index]}{' '}
        <a href={withIds(ids.filter((one) => one !== id))} aria-label={`Remove ${names[index]}`}>
          ×
        </a>
      </li>
    ))}
  </ul>
)

const SCALES = ['hundred', 'absolute'] as const

function Lines({ lines, range }: { lines: readonly OverlayLine[]; range: Range }) {
  const scale = chosen('scale', SCALES, 'hundred')
  const controls = (
    <div class="choices">
      <RangeChoice range={range} />
      <Choice
        name="scale"
        label="Scale"
        options={[
          { value: 'hundred', text: 'Start = 100' },
          { value: 'absolute', text: 'US dollars' },
        ]}
        value={scale}
      />
    </div>
  )
  return <Overlay {...{ title: 'Compared', lines, range, controls }} isFromHundred={scale === 'hundred'} />
}

function Tokens({ ids }: { ids: readonly string[] }) {
  const { range, interval, start } = useRange('90d')
  const question = toQuestion('/data/tokens', { id: [...ids], limit: MOST })
  const tokens = useAnswer(question)
  const names = ids.map((id) => tokens.received?.data.find(({ _id }) => _id === id)?.symbol ?? NAMELESS)
  const lines = ids.map((id, at) => {
    const query = { id, start, interval, fill: 'null' } as const
    return toOverlayLine(names[at] ?? NAMELESS, toQuestion('/data/tokens/historic-financial', query, range), toPrice)
  })
  return (
    <>
      <Selected ids={ids} names={names} />
      <Lines key={ids.join(' ')} lines={lines} range={range} />
      <Card title="Side by side" question={question} facts={tokens.received?.facts}>
        <Shown of={tokens} what="tokens" isEmpty={(data) => data.length === 0}>
          {(data) => (
            <RecordTable caption="Tokens" records={data} columns={usualOf(COLUMNS)} keyOf={({ _id }) => _id} isSteady />
          )}
        </Shown>
      </Card>
    </>
  )
}

function Daos({ ids }: { ids: readonly string[] }) {
  const { range } = useRange('90d')
  const start = useStart(range, '1d')
  const question = toQuestion('/data/daos/treasury', { id: [...ids], limit: MOST })
  const daos = useAnswer(question)
  const names = ids.map((id) => daos.received?.data.find(({ _id }) => _id === id)?.name ?? NAMELESS)
  const parameters = { start, interval: '1d', order: 'asc', fill: 'null' } as const
  const lines = ids.map((id, at) => {
    const treasury = toQuestion('/data/daos/treasury/historic', { id, ...parameters }, range)
    return toOverlayLine(names[at] ?? NAMELESS, treasury, toTreasury)
  })
  return (
    <>
      <Selected ids={ids} names={names} />
      <Lines key={ids.join(' ')} lines={lines} range={range} />
      <Card title="Side by side" question={question} facts={daos.received?.facts}>
        <Shown of={daos} what="DAOs" isEmpty={(data) => data.length === 0}>
          {(data) => (
            <RecordTable caption="DAOs" records={data} columns={usualOf(TREASURY)} keyOf={({ _id }) => _id} isSteady />
          )}
        </Shown>
      </Card>
    </>
  )
}

/** How many records a suggested comparison has. */
const SUGGESTED = 3

/** The largest records: links that compare the first ones, and links that add one to the selection. */
function Suggestions({ kind, ids }: { kind: (typeof KINDS)[number]; ids: readonly string[] }) {
  const isTokens = kind === 'tokens'
  // The selected ones may be among the largest.
  const limit = 2 * MOST
  const tokens = useAnswer(
    isTokens ? toQuestion('/data/tokens', { sort: '-financialData.marketCap', limit }) : undefined,
  ).received?.data.map(({ _id, symbol }) => ({ id: _id, text: symbol }))
  const daos = useAnswer(
    isTokens ? undefined : toQuestion('/data/daos/treasury', { sort: '-treasuryData.valueUsd', limit }),
  ).received?.data.map(({ _id, name }) => ({ id: _id, text: name }))
  const all = ((isTokens ? tokens : daos) ?? []).filter(({ id }) => !ids.includes(id)).slice(0, MOST)
  const first = all.slice(0, SUGGESTED)
  return (
    <p class="links">
      {ids.length === 0 && first.length > 1 && (
        <a href={withIds(first.map(({ id }) => id))}>Compare {first.map(({ text }) => text).join(', ')}</a>
      )}
      {all.length > 0 && <span>Add</span>}
      {all.map(({ id, text }) => (
        <a key={id} href={withIds([...ids, id])}>
          {text}
        </a>
      ))}
    </p>
  )
}

/** Several tokens by price, or several DAOs by treasury, in one chart and one table. */
export function Compare() {
  const kind = chosen('of', KINDS, 'tokens')
  const ids = idsOf()
  const Compared = kind === 'tokens' ? Tokens : Daos
  return (
    <>
      <h1>Compare</h1>
      <Choice
        name="of"
        label="Compared"
        options={[
          { value: 'tokens', text: 'Tokens by price' },
          { value: 'daos', text: 'DAOs by treasury' },
        ]}
        value={kind}
        clears={['ids', 'range', 'interval']}
      />
      <Add key={kind} kind={kind} ids={ids} />
      {ids.length === 0 && (
        <p class="state empty">Type the name of a token or DAO to add it. Commas separate several names.</p>
      )}
      {ids.length < MOST && <Suggestions key={kind} kind={kind} ids={ids} />}
      {ids.length > 0 && <Compared ids={ids} />}
    </>
  )
}
