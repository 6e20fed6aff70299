import { z } from 'zod'
import { idValue, uint8 } from '../records/values.ts'

/** What a token is, in the records of tokens and of DAOs, with or without its financial data between these and `tokenLinks`. */
export const tokenFacts = {
  _id: idValue.describe('Id of the token.'),
  name: z.string().describe('Name of the token.'),
  symbol: z.string().describe('Its ticker symbol; several tokens may share one.'),
  contractAddress: z.string().describe('Address of its contract on `chain`; in lower case on EVM chains.'),
  decimal: uint8.describe('Decimal places of an amount on the chain.'),
  live: z.boolean().describe('Whether data is collected of it: those that ended only show up with `asOf`.'),
  dao: idValue.describe('Id of the DAO that it belongs to.'),
  cmcId: z.string().nullable().describe('Id at CoinMarketCap; null where it is not listed there.'),
  chain: idValue.describe('Id of its chain, a record of /data/chains.'),
}

/** The same as values of a token's row `t`. */
export const TOKEN_FACTS =
  't.id, t.name, t.symbol, t.contract_address, t.decimals, t.live, t.dao_id, t.cmc_id, t.chain_id'

/** What leads to a token's prices. */
export const tokenLinks = {
  livePrice: z.boolean().describe('Whether its price is collected every five minutes.'),
  chart24h: z.url().describe('URL of an SVG image of its price over the last 24 hours.'),
}

/** The same as values of a token's row `t`. */
export const TOKEN_LINKS = "t.live_price, concat({charts: String}, t.id, '.svg')"
