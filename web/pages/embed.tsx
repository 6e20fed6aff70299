import type { JSX } from 'preact'
import { useAnswer } from '../answers.ts'
import { toQuestion } from '../interface.ts'
import { isDemo } from '../mode.ts'
import { chosen } from '../parts/choice.tsx'
import { Late } from '../parts/late.tsx'
import { Shown } from '../parts/shown.tsx'
import { path } from '../place.ts'
import { IndexChart } from './index-chart.tsx'
import { PriceChart } from './price-chart.tsx'
import { TreasuryHistory } from './treasury.tsx'
import { FlowHistory } from './treasury-flows.tsx'

function Token({ id }: { id: string }) {
  const tokens = useAnswer(toQuestion('/data/tokens', { id: [id] }))
  return (
    <Shown of={tokens} what="the token" isEmpty={(data) => data.length === 0} empty="No token has this id.">
      {([token]) =>
        token !== undefined && <PriceChart id={id} name={token.name} dao={undefined} newest={token.financialData} />
      }
    </Shown>
  )
}

function Dao({ id }: { id: string }) {
  const Chart = chosen('metric', ['treasury', 'flows'], 'treasury') === 'flows' ? FlowHistory : TreasuryHistory
  const daos = useAnswer(toQuestion('/data/daos', { id: [id] }))
  return (
    <Shown of={daos} what="the DAO" isEmpty={(data) => data.length === 0} empty="No DAO has this id.">
      {([dao]) => dao !== undefined && <Chart id={id} name={dao.name} />}
    </Shown>
  )
}

const loadBasket = async () => (await import('./baskets.tsx')).EmbeddedBasket

const CHARTS: Readonly<Record<string, (id: string) => JSX.Element>> = {
  tokens: (id) => <Token id={id} />,
  daos: (id) => <Dao id={id} />,
  baskets: () => (
    <Late what="chart" load={loadBasket} loading={<p class="state loading">Loading the chart …</p>}>
      {(Basket) => <Basket />}
    </Late>
  ),
  index: () => <IndexChart usual="all" />,
}

/** One chart for a page of another site. The address has its range and theme. */
export function EmbedPage() {
  const [, kind = '', id = ''] = path.value.split('/')
  return (
    <main class="embed">
      <h1 class="hidden">Chart of dao-data</h1>
      {CHARTS[kind]?.(id) ?? <p class="state empty">There is no such chart.</p>}
      <p class="origin">
        {isDemo && (
          <span class="demo">
            <strong>DEMO</strong> – all numbers here are simulated.
          </span>
        )}
        <a href={path.value.slice('embed/'.length)}>dao-data</a>
      </p>
    </main>
  )
}
