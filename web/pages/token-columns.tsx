import { toShort } from '../format.ts'
import type { Answer } from '../interface.ts'
import type { ListColumn } from '../parts/columns.tsx'
import { Mark, Sparkline } from '../parts/mark.tsx'
import { Change, TimeValue, Value } from '../parts/value.tsx'

type Token = Answer<'/data/tokens'>[number]
type Member = Exclude<keyof Token['financialData'], 'lastUpdated'>

export const NO_VALUE_LOCKED = 'The DAO has no protocol with deposits, or no source reports them.'
export const NO_MAXIMUM = 'No maximum supply, or no source reports one.'

const toNumber = (title: string, id: Member, as: 'usd' | 'amount', why?: string): ListColumn<Token> => ({
  id,
  title,
  member: `financialData.${id}`,
  isNumber: true,
  cell: ({ financialData }) => <Value of={financialData[id]} as={as} why={why} />,
})

const toChange = (title: string, id: Member, name = `Change of the price in ${title}`): ListColumn<Token> => ({
  id,
  title,
  name,
  member: `financialData.${id}`,
  isNumber: true,
  cell: ({ financialData }) => <Change of={financialData[id]} />,
})

export const NAME: ListColumn<Token> = {
  id: 'name',
  title: 'Token',
  member: 'name',
  of: ['name', 'symbol'],
  cell: ({ _id, name, symbol }) => (
    // Keyed by id: another token's name is another link, so it does not count as moved.
    <a key={_id} class="named" href={`tokens/${_id}`}>
      <Mark id={_id} />
      <span title={name}>{name}</span> <small>{symbol}</small>
    </a>
  ),
}
export const PRICE = toNumber('Price', 'price', 'usd')
export const CHANGE_24H = toChange('24 h', 'percentChange24h')

const extra = (column: ListColumn<Token>): ListColumn<Token> => ({ ...column, isExtra: true })

export const COLUMNS: readonly ListColumn<Token>[] = [
  NAME,
  PRICE,
  CHANGE_24H,
  toNumber('Market cap', 'marketCap', 'usd'),
  toChange('7 d', 'percentChange7d'),
  toChange('30 d', 'percentChange30d'),
  extra(toChange('1 h', 'percentChange1h')),
  extra(toChange('60 d', 'percentChange60d')),
  extra(toChange('90 d', 'percentChanged90d')),
  toNumber('Volume 24 h', 'volume24h', 'usd'),
  extra(toChange('Volume change', 'volumeChange24h', 'Volume change, 24 h')),
  toNumber('Value locked', 'tvl', 'usd', NO_VALUE_LOCKED),
  extra(toNumber('Fully diluted', 'fullyDilutedMarketCap', 'usd')),
  extra(toNumber('Circulating', 'circulatingSupply', 'amount')),
  extra(toNumber('Supply', 'totalSupply', 'amount')),
  extra(toNumber('Maximum', 'maxSupply', 'amount', NO_MAXIMUM)),
  { id: 'day', title: 'Last 24 h', of: [], cell: ({ _id, name }) => <Sparkline id={_id} name={name} /> },
  extra({
    id: 'contract',
    title: 'Contract',
    of: ['contractAddress'],
    cell: ({ contractAddress }) => <code title={contractAddress}>{toShort(contractAddress)}</code>,
  }),
  extra({
    id: 'updated',
    title: 'Updated',
    of: ['financialData'],
    cell: ({ financialData }) => <TimeValue at={financialData.lastUpdated} />,
  }),
]
