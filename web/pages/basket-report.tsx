import { toCounted, toDay, toText } from '../format.ts'
import { Card, Stat, Stats } from '../parts/card.tsx'
import { RecordTable } from '../parts/record-table.tsx'
import { DayValue, Value } from '../parts/value.tsx'
import { go, query, withQuery } from '../place.ts'
import { type BasketReport, type Rule, toReportQuestion, toTableQuestion } from './basket-rule.ts'

type Rebalance = BasketReport['rebalances'][number]

const TOO_FEW = 'Too few daily returns, or they do not vary.'

/** The statistics of a back-test, with their formulas. */
export function Statistics({ of, rule }: { of: BasketReport; rule: Rule }) {
  const { maxDrawdown: fall } = of
  return (
    <Card title="Statistics" question={toReportQuestion(rule)} hasTables={false}>
      <Stats>
        <Stat name="Value">
          <Value of={of.nav} as="amount" why="No day has a value." /> <small>from {of.rule.base}</small>
        </Stat>
        <Stat name="Total return">
          <Value of={of.totalReturn === null ? null : of.totalReturn * 100} as="change" why="No day has a value." />
        </Stat>
        <Stat name="Volatility, yearly">
          <Value of={of.volatility} as="share" why={TOO_FEW} />
        </Stat>
        <Stat name="Sharpe ratio">
          <Value of={of.sharpe} as="amount" why={TOO_FEW} />
        </Stat>
        <Stat name="Largest fall">
          <Value of={fall === null ? null : fall.value * 100} as="change" why="No day has a value." />
        </Stat>
        {fall !== null && fall.value < 0 && (
          <>
            <Stat name="From peak to trough">
              <DayValue at={fall.peakAt} /> to <DayValue at={fall.troughAt} />
            </Stat>
            <Stat name="Recovered">{fall.recoveredAt === null ? 'not yet' : <DayValue at={fall.recoveredAt} />}</Stat>
          </>
        )}
        <Stat name="Tracking error to the Index">
          <Value of={of.trackingError} as="share" why={TOO_FEW} />
        </Stat>
        <Stat name="Correlation with the Index">
          <Value of={of.correlation} as="amount" why={TOO_FEW} />
        </Stat>
        <Stat name="Turnover, one way">
          <Value of={of.turnover} as="share" />
        </Stat>
        <Stat name="Costs">
          <Value of={of.cost} as="amount" />
        </Stat>
        <Stat name="Daily returns">
          <Value of={of.returns} as="count" /> <small>{toText(of.returnsWithIndex, 'count')} with the Index</small>
        </Stat>
        <Stat name="Days without a value">
          <Value of={of.missingPriceDays.length} as="count" />
        </Stat>
        <Stat name="Candidates">
          <Value of={of.universe.candidates} as="count" /> <small>{of.universe.ended} ended by then</small>
        </Stat>
      </Stats>
      <p class="note">
        Volatility is the sample standard deviation of the daily returns times √{of.periodsPerYear}. The Sharpe ratio is
        their mean divided by their deviation, times √{of.periodsPerYear}, without a risk-free rate. The tracking error
        is the deviation of the differences to the Index, times √{of.periodsPerYear}; the correlation is Pearson’s. The
        largest fall is the minimum of value / earlier maximum − 1. Ended tokens are candidates until their end. A day
        without a price of a held token has no value, and no return across it is used.
      </p>
    </Card>
  )
}

const MOST_NAMED = 10

/** The largest weights as a text: `UNI 20.00 %, AAVE 10.00 %`. */
function toHoldings({ members }: Rebalance): string {
  const largest = members.toSorted((a, b) => b.weight - a.weight)
  const named = largest.slice(0, MOST_NAMED).map(({ symbol, weight }) => `${symbol} ${toText(weight, 'share')}`)
  return [...named, ...(members.length > MOST_NAMED ? [`${members.length - MOST_NAMED} more`] : [])].join(', ')
}

/** The table of rebalances, newest first, with the tokens and costs of each. */
export function Rebalances({ of, rule }: { of: BasketReport; rule: Rule }) {
  const symbols = new Map(of.rebalances.flatMap(({ members }) => members.map(({ token, symbol }) => [token, symbol])))
  const toNames = (tokens: readonly string[]) => tokens.map((token) => symbols.get(token) ?? token).join(', ')
  return (
    <Card title="Rebalances" question={toTableQuestion(rule, 'rebalances')}>
      <RecordTable
        caption="Rebalances, newest first"
        records={of.rebalances.toReversed()}
        keyOf={({ scheduledAt }) => scheduledAt}
        columns={[
          {
            title: 'Day',
            cell: ({ scheduledAt, executedAt }) => (
              <>
                <DayValue at={executedAt} />
                {executedAt !== scheduledAt && <small> due {toDay(new Date(scheduledAt))}</small>}
              </>
            ),
          },
          { title: 'Value', isNumber: true, cell: ({ nav }) => <Value of={nav} as="amount" /> },
          { title: 'Turnover', isNumber: true, cell: ({ turnover }) => <Value of={turnover} as="share" /> },
          { title: 'Cost', isNumber: true, cell: ({ cost }) => <Value of={cost} as="amount" /> },
          { title: 'Tokens', isNumber: true, cell: ({ members }) => <Value of={members.length} as="count" /> },
          { title: 'Entered', isText: true, cell: ({ entered }) => <Names of={toNames(entered)} /> },
          { title: 'Left', isText: true, cell: ({ exited }) => <Names of={toNames(exited)} /> },
          {
            title: 'Largest weights',
            isWide: true,
            cell: (one) => <span class="text">{toHoldings(one)}</span>,
          },
        ]}
      />
    </Card>
  )
}

const Names = ({ of }: { of: string }) => (of === '' ? <small>none</small> : <span class="text short">{of}</span>)

const REASONS: Readonly<Record<Rebalance['excluded'][number]['reason'], string>> = {
  ...{
    notYetListed: 'not listed yet',
    ended: 'ended',
    noMarketCap: 'without a market cap',
    noPrice: 'without a price',
  },
  ...{ belowTop: 'smaller', pegged: 'pegged', wrapped: 'wrapped' },
}

/** `12 smaller, 2 pegged`. */
function toReasons(excluded: Rebalance['excluded']): string {
  const counts = Object.entries(REASONS).map(([reason, text]) => {
    const count = excluded.filter((one) => one.reason === reason).length
    return count === 0 ? '' : `${count} ${text}`
  })
  return counts.filter((text) => text !== '').join(', ')
}

/** The holdings of the basket after one rebalance: the newest one, unless the address names another. */
export function Holdings({ of, rule }: { of: BasketReport; rule: Rule }) {
  const said = query.value.get('trades')
  const trades = of.rebalances.find(({ executedAt }) => executedAt.startsWith(said ?? '-')) ?? of.rebalances.at(-1)
  if (trades === undefined) return null
  const entered = new Set(trades.entered)
  const excluded = toReasons(trades.excluded)
  const controls = (
    <div class="filters">
      <label>
        Rebalance
        <select
          value={trades.executedAt.slice(0, 10)}
          onChange={({ currentTarget }) => go(withQuery({ trades: currentTarget.value }))}
        >
          {of.rebalances.toReversed().map(({ executedAt }) => (
            <option key={executedAt} value={executedAt.slice(0, 10)}>
              {toDay(new Date(executedAt))}
            </option>
          ))}
        </select>
      </label>
    </div>
  )
  return (
    <Card
      title={`Holdings from ${toDay(new Date(trades.executedAt))}`}
      question={toTableQuestion(rule, 'holdings')}
      controls={controls}
    >
      <RecordTable
        caption="Holdings"
        records={trades.members.toSorted((a, b) => b.weight - a.weight)}
        keyOf={({ token }) => token}
        columns={[
          {
            title: 'Token',
            cell: ({ token, symbol }) => (
              <>
                <a href={`tokens/${token}`}>{symbol}</a>
                {entered.has(token) && of.rebalances[0] !== trades && <small> new</small>}
              </>
            ),
          },
          { title: 'Weight', isNumber: true, cell: ({ weight }) => <Value of={weight} as="share" /> },
          { title: 'Quantity', isNumber: true, cell: ({ units }) => <Value of={units} as="amount" /> },
          { title: 'Price', isNumber: true, cell: ({ price }) => <Value of={price} as="usd" /> },
        ]}
      />
      <p class="note">
        Decided with the values of {toDay(new Date(trades.decidedWith))}.{excluded !== '' && ` Not held: ${excluded}.`}
      </p>
    </Card>
  )
}

/** Tokens that were paid out between two rebalances, and days without a value; empty if there are none. */
export function Irregularities({ of, rule }: { of: BasketReport; rule: Rule }) {
  const symbols = new Map(of.rebalances.flatMap(({ members }) => members.map(({ token, symbol }) => [token, symbol])))
  return (
    <>
      {of.exits.length > 0 && (
        <Card title="Paid out between rebalances" question={toTableQuestion(rule, 'exits')}>
          <RecordTable
            caption="Tokens that were paid out"
            records={of.exits}
            keyOf={({ token, at }) => `${token} ${at}`}
            columns={[
              { title: 'Day', cell: ({ at }) => <DayValue at={at} /> },
              { title: 'Token', cell: ({ symbol }) => symbol },
              {
                title: 'Reason',
                cell: ({ reason }) => (reason === 'ended' ? 'The token ended' : 'No price for over seven days'),
              },
              { title: 'Last price', isNumber: true, cell: ({ price }) => <Value of={price} as="usd" /> },
            ]}
          />
        </Card>
      )}
      {of.missingPriceDays.length > 0 && (
        <Card
          title={`${toCounted(of.missingPriceDays.length, 'day')} without a value`}
          question={toTableQuestion(rule, 'missingPriceDays')}
        >
          <RecordTable
            caption="Days without a price of a held token"
            records={of.missingPriceDays}
            keyOf={({ day }) => day}
            columns={[
              { title: 'Day', cell: ({ day }) => <DayValue at={day} /> },
              {
                title: 'Tokens without a price',
                cell: ({ tokens }) => tokens.map((token) => symbols.get(token) ?? token).join(', '),
              },
            ]}
          />
        </Card>
      )}
    </>
  )
}
