import { useAnswer } from '../answers.ts'
import { type Answer, toQuestion } from '../interface.ts'
import { Card, Stat, Stats } from '../parts/card.tsx'
import { Mark } from '../parts/mark.tsx'
import { Shown } from '../parts/shown.tsx'
import { useTitle } from '../parts/title.ts'
import { Change, TimeValue, Value } from '../parts/value.tsx'
import { Flows } from './flows.tsx'
import { Holders } from './holders.tsx'
import { PriceChart } from './price-chart.tsx'
import { NO_MAXIMUM, NO_VALUE_LOCKED } from './token-columns.tsx'

type Token = Answer<'/data/tokens'>[number]

function Heading({ token: { _id, name, symbol, financialData } }: { token: Token }) {
  return (
    <div class="title">
      <Mark id={_id} />
      <h1>
        {name} <small>{symbol}</small>
      </h1>
      <span class="large">
        <Value of={financialData.price} as="usd" />
      </span>
      <span>
        <small>24 h</small> <Change of={financialData.percentChange24h} />
      </span>
    </div>
  )
}

function Numbers({ data, symbol }: { data: Token['financialData']; symbol: string }) {
  const unit = <small>{symbol}</small>
  return (
    <Stats>
      <Stat name="Market cap">
        <Value of={data.marketCap} as="usd" />
      </Stat>
      <Stat name="Fully diluted market cap">
        <Value of={data.fullyDilutedMarketCap} as="usd" />
      </Stat>
      <Stat name="Volume, 24 h">
        <Value of={data.volume24h} as="usd" />
      </Stat>
      <Stat name="Volume change, 24 h">
        <Change of={data.volumeChange24h} />
      </Stat>
      <Stat name="Value locked">
        <Value of={data.tvl} as="usd" why={NO_VALUE_LOCKED} />
      </Stat>
      <Stat name="Circulating supply">
        <Value of={data.circulatingSupply} as="amount" /> {unit}
      </Stat>
      <Stat name="Total supply">
        <Value of={data.totalSupply} as="amount" /> {unit}
      </Stat>
      <Stat name="Maximum supply">
        <Value of={data.maxSupply} as="amount" why={NO_MAXIMUM} /> {unit}
      </Stat>
      <Stat name="Change, 1 hour">
        <Change of={data.percentChange1h} />
      </Stat>
      <Stat name="Change, 24 hours">
        <Change of={data.percentChange24h} />
      </Stat>
      <Stat name="Change, 7 days">
        <Change of={data.percentChange7d} />
      </Stat>
      <Stat name="Change, 30 days">
        <Change of={data.percentChange30d} />
      </Stat>
      <Stat name="Change, 60 days">
        <Change of={data.percentChange60d} />
      </Stat>
      <Stat name="Change, 90 days">
        <Change of={data.percentChanged90d} />
      </Stat>
      <Stat name="Updated">
        <TimeValue at={data.lastUpdated} />
      </Stat>
    </Stats>
  )
}

function Where({ token }: { token: Token }) {
  const { received } = useAnswer(toQuestion('/data/chains', {}))
  const chain = received?.data.find(({ _id }) => _id === token.chain)
  return (
    <p class="links">
      <a href={`daos/${token.dao}`}>DAO</a>
      <a href={`compare?ids=${token._id}`}>Compare</a>
      <span>
        {chain?.name ?? 'Chain'}: <code>{token.contractAddress}</code>
      </span>
      {token.cmcId !== null && <span>CoinMarketCap id {token.cmcId}</span>}
    </p>
  )
}

export function TokenPage({ id }: { id: string }) {
  const question = toQuestion('/data/tokens', { id: [id] })
  const tokens = useAnswer(question)
  useTitle(tokens.received?.data)
  return (
    <Shown of={tokens} what="the token" isEmpty={(data) => data.length === 0} empty="No token has this id.">
      {([token], facts) =>
        token !== undefined && (
          <div class="column">
            <Heading token={token} />
            <Where token={token} />
            <div class="beside">
              <PriceChart id={id} name={token.name} dao={token.dao} newest={token.financialData} />
              <div class="rows">
                <Card title="Numbers" question={question} facts={facts}>
                  <Numbers data={token.financialData} symbol={token.symbol} />
                </Card>
              </div>
            </div>
            <div class="grid">
              <Holders id={id} symbol={token.symbol} />
              <Flows id={id} name={token.name} />
            </div>
          </div>
        )
      }
    </Shown>
  )
}
