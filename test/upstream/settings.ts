/** The stand-in accepts any key. The key is too short to be masked in logs. */
const KEY = 'demo'

/**
 * The settings that send every provider's calls to the stand-in at `url`, with keys and with rates that cause no delay.
 * `nodes` are the chains with a node.
 */
export function toStandInSettings(url: string, nodes: readonly string[] = ['ethereum']): Record<string, string> {
  return {
    COINMARKETCAP_BASE_URL: `${url}/coinmarketcap`,
    COINMARKETCAP_API_KEY: KEY,
    COINMARKETCAP_REQUESTS_PER_MINUTE: '60000',
    COINMARKETCAP_CREDITS_PER_MONTH: '1000000000',
    COINGECKO_BASE_URL: `${url}/coingecko/api/v3`,
    COINGECKO_API_KEY: KEY,
    COINGECKO_REQUESTS_PER_MINUTE: '60000',
    COINGECKO_CALLS_PER_MONTH: '1000000000',
    DEFILLAMA_BASE_URL: `${url}/defillama`,
    DEFILLAMA_COINS_BASE_URL: `${url}/defillama-coins`,
    DEFILLAMA_REQUESTS_PER_MINUTE: '60000',
    RPC_URLS: nodes.map((chain) => `${chain}=${url}/rpc/${chain}`).join(','),
    RPC_REQUESTS_PER_MINUTE: '600000',
    MORALIS_BASE_URL: `${url}/moralis/api/v2.2`,
    MORALIS_API_KEY: KEY,
    MORALIS_REQUESTS_PER_MINUTE: '60000',
    MORALIS_UNITS_PER_DAY: '1000000000',
    ETHPLORER_BASE_URL: `${url}/ethplorer`,
    ETHPLORER_BNB_BASE_URL: `${url}/binplorer`,
    ETHPLORER_REQUESTS_PER_MINUTE: '60000',
    ETHPLORER_REQUESTS_PER_HOUR: '60000',
    X_BASE_URL: `${url}/x`,
    X_BEARER_TOKEN: KEY,
    X_REQUESTS_PER_MINUTE: '600000',
    SENTIMENT_SAMPLE_SIZE: '25',
    DISCORD_BASE_URL: `${url}/discord/api/v10`,
    DISCORD_REQUESTS_PER_MINUTE: '600000',
    TELEGRAM_BASE_URL: `${url}/telegram`,
    TELEGRAM_BOT_BASE_URL: `${url}/telegram-bot`,
    TELEGRAM_BOT_TOKEN: KEY,
    TELEGRAM_REQUESTS_PER_MINUTE: '600000',
    SNAPSHOT_BASE_URL: `${url}/snapshot`,
    SNAPSHOT_REQUESTS_PER_MINUTE: '60000',
    GOLDRUSH_BASE_URL: `${url}/goldrush`,
    GOLDRUSH_API_KEY: KEY,
    GOLDRUSH_REQUESTS_PER_MINUTE: '60000',
    ETHERSCAN_BASE_URL: `${url}/etherscan`,
    ETHERSCAN_API_KEY: KEY,
    ETHERSCAN_REQUESTS_PER_MINUTE: '60000',
    BLOCKSCOUT_BASE_URL: `${url}/blockscout`,
    BLOCKSCOUT_API_KEY: KEY,
    BLOCKSCOUT_REQUESTS_PER_MINUTE: '60000',
    BLOCKSCOUT_CHAINS: 'optimism,base,avalanche,bnb,fantom',
  }
}
