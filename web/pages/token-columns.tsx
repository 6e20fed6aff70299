import type { Answer } from '../interface.ts'
import { Mark, Sparkline } from '../parts/mark.tsx'
import type { Column } from '../parts/record-table.tsx'
import { Change, Value } from '../parts/value.tsx'

type Token = Answer<'/data/tokens'>[number]

const NO_VALUE_LOCKED = 'Its DAO runs no protocol that holds deposits, or no source has said how much.'

const toUsd = (title: string, member: 'price' | 'marketCap' | 'volume24h' | 'tvl', why?: string): Column<Token> => ({
  title,
  member: `financialData.${member}`,
  isNumber: true,
  cell: ({ financialData }) => <Value of={financialData[member]} as="usd" why={why} />,
})

const toChange = (
  title: string,
  member: 'percentChange1h' | 'percentChange24h' | 'percentChange7d' | 'percentChange30d',
) => ({
  title,
  member: `financialData.${member}`,
  isNumber: true,
  cell: ({ financialData }: Token) => <Change of={financialData[member]} />,
})

export const NAME: Column<Token> = {
  title: 'Token',
  member: 'name',
  cell: ({ _id, name, symbol }) => (
    // Another token's name in its place is another link, and has not moved.
    <a key={_id} class="named" href={`tokens/${_id}`}>
      <Mark id={_id} />
      {name} <small>{symbol}</small>
    </a>
  ),
}
export const PRICE = toUsd('Price', 'price')
export const CHANGE_24H = toChange('24 h', 'percentChange24h')

export const COLUMNS: readonly Column<Token>[] = [
  NAME,
  PRICE,
  toChange('1 h', 'percentChange1h'),
  CHANGE_24H,
  toChange('7 d', 'percentChange7d'),
  toChange('30 d', 'percentChange30d'),
  toUsd('Market cap', 'marketCap'),
  toUsd('Volume 24 h', 'volume24h'),
  toUsd('Value locked', 'tvl', NO_VALUE_LOCKED),
  { title: 'Last 24 h', cell: ({ _id, name }) => <Sparkline id={_id} name={name} /> },
]
