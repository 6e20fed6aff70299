import { writeFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { EXAMPLES_FILE, exampleAnswers } from '../../api/openapi/examples.ts'
import { routes } from '../../api/routes.ts'
import { DEMO_NOW, type Demo, startDemo } from '../support/demo.ts'

/** The request with the best short example of an operation's response. */
const REQUESTS: Readonly<Record<(typeof routes)[number]['operation'], string>> = {
  listTokens: '/data/tokens?name=Uniswap&limit=1',
  listTokenHolders: '/data/tokens/holders?name=Uniswap&limit=1',
  listTokenDexData: '/data/tokens/dex-data?name=Uniswap&limit=1',
  getTokenHoldersHistory: '/data/tokens/holders/historic?name=Uniswap&limit=2',
  getTokenHolderLabelsHistory: '/data/tokens/holders/historic-labels?name=Uniswap&limit=2',
  getTokenPriceHistory: '/data/tokens/historic-financial?name=Uniswap&interval=1d&start=2026-05-01&limit=2',
  getTokenCandles: '/data/tokens/historic-ohlc?name=Uniswap&interval=1d&start=2026-05-01&limit=3',
  getTokenDexTrades: '/data/tokens/historic-dex-trades?name=Uniswap&limit=2',
  getTokenDexCandles: '/data/tokens/historic-dex-ohlcv?name=Uniswap&interval=1h&start=2026-05-06&limit=2',
  getTokenProfile: '/data/tokens/profile?name=dYdX',
  listDaos: '/data/daos?name=Uniswap&limit=1',
  getDaoProfile: '/data/daos/profile?name=Nouns',
  getTotalMarketCapHistory: '/data/aggregated/market-cap?limit=3',
  getTotalTreasuryValueHistory: '/data/aggregated/treasury-value?limit=3',
  listCategorySums: '/data/aggregated/categories?filter=tokens%3E12',
  listChainSums: '/data/aggregated/chains?filter=tokens%3E20',
  search: '/data/search?q=uni&limit=3',
  listCategories: '/data/categories?filter=slug%3Dlending',
  listChains: '/data/chains?filter=chainId%3D1',
  getTokenChart: '',
  getMark: '',
  getStatus: '/data/status',
  getCoverage: '/data/status/coverage?dataset=prices&id=a00a15074c647764fac27d6c&start=2026-04-28&end=2026-05-02',
  getProvenance: '/data/provenance?dataset=market-cap',
  listChanges: '/data/changes?id=a00a15074c647764fac27d6c&limit=2',
  listAlerts: '/data/alerts?limit=1',
  listAlertRules: '/data/alerts/rules',
  getAtomFeed: '',
  getJsonFeed: '',
  getVotesCalendar: '',
  getUsage: '/data/usage',
  getLiveness: '/health/live',
  getReadiness: '/health/ready',
  getDaoGovernance: '/data/daos/governance?name=Rarible',
  listDaoGovernance: '/data/daos/governance/summary?name=Aave&limit=1',
  listDaoProposals: '/data/daos/governance/proposals?name=Aave&limit=1',
  listProposalActions: '/data/daos/governance/proposals/actions?proposal=6cbf6ea56e0d397351103b81',
  listDaoVotes: '/data/daos/governance/votes?name=Aave&limit=2',
  listDaoVoters: '/data/daos/governance/voters?name=Aave&limit=2',
  listDaoDelegates: '/data/daos/governance/delegates?name=Uniswap&limit=2',
  getDelegateHistory:
    '/data/daos/governance/delegates/historic?name=Uniswap&address=0x32d56654fc1c884c76f035e0e69a55ff9b3adada&limit=2',
  listDaoDelegations: '/data/daos/governance/delegations?name=Uniswap&limit=2',
  getDaoConcentration: '/data/daos/governance/concentration?name=Uniswap&limit=2',
  getDaoVotingRecord:
    '/data/daos/governance/record?name=Uniswap&address=0x32d56654fc1c884c76f035e0e69a55ff9b3adada&source=governor',
  listDaoVotingRecords: '/data/daos/governance/records?name=Uniswap&limit=2',
  getDaoVotingBlocs: '/data/daos/governance/blocs?name=Uniswap&source=governor&proposals=2',
  listVoterDaos: '/data/voters?address=0x32d56654fc1c884c76f035e0e69a55ff9b3adada',
  listDaoTreasuries: '/data/daos/treasury?name=Uniswap&limit=1',
  listDaoTreasuryKinds: '/data/daos/treasury/kinds?name=Uniswap&limit=1',
  listDaoHoldings: '/data/daos/treasury/holdings?name=Uniswap&limit=3',
  getDaoHoldingsHistory: '/data/daos/treasury/holdings/historic?name=Uniswap&limit=3',
  getDaoTreasuryHistory: '/data/daos/treasury/historic?name=Uniswap&limit=2',
  listDaoTreasuryFlows: '/data/daos/treasury/flows?name=Ethereum%20Name&limit=2',
  getDaoTreasuryFlowHistory: '/data/daos/treasury/flows/historic?name=Ethereum%20Name&interval=1M&limit=2',
  listDaoTreasuryCounterparties: '/data/daos/treasury/flows/counterparties?name=Ethereum%20Name&limit=2',
  listDaoTreasuryRunways: '/data/daos/treasury/runway?name=Ethereum%20Name',
  listDaoFees: '/data/daos/fees?name=Uniswap&limit=1',
  getDaoFeesHistory: '/data/daos/fees/historic?name=Uniswap&limit=2',
  listDaoRatings: '/data/daos/ratings?name=Aave&limit=1',
  listDaoSocials: '/data/daos/socials?name=Aave&limit=1',
  getDaoTwitterHistory: '/data/daos/socials/historic-twitter?name=Uniswap&limit=2',
  getDaoDiscordHistory: '/data/daos/socials/historic-discord?name=Aave&limit=2',
  getDaoTelegramHistory: '/data/daos/socials/historic-telegram?name=Aave&limit=2',
  listDaoTwitterSentiment: '/data/daos/twitter-sentiment?name=Uniswap&limit=1',
  getDaoTwitterSentimentHistory: '/data/daos/socials/historic-twitter-sentiment?name=Uniswap&limit=2',
  getDaoTwitterSentimentSamples: '/data/daos/twitter-sentiment/samples?name=Uniswap&limit=2',
  getIndexToken: '/data/index/token-data',
  getIndexComposition: '/data/index/composition',
  listIndexCompositions: '/data/index/compositions',
  listIndexWeights: '/data/index/weights',
  getIndexHistory: '/data/index/historic?period=1',
  getBasketHistory: '/data/baskets/historic?of=UNI%3A0.6%2CAAVE%3A0.4&start=2026-04-30&end=2026-05-03',
  getBasketReport: '/data/baskets/report?top=2&weights=marketCap&category=lending&start=2026-04-30&end=2026-05-03',
}

let demo: Demo
beforeAll(async () => {
  demo = await startDemo()
})
afterAll(() => demo?.close())

/** Registry records and changes have the machine's time: the examples show the demo's time. */
const settle = (text: string): unknown =>
  JSON.parse(text, (name, value) => {
    const isOfMachine = ['createdAt', 'updatedAt', 'at', 'storedAt'].includes(name) && Date.parse(value) > DEMO_NOW
    return isOfMachine ? new Date(DEMO_NOW).toISOString() : value
  })

describe('examples of the OpenAPI document', () => {
  const inJson = routes.filter(({ mediaType }) => mediaType === 'application/json')

  it.each(inJson)('show the response of $operation', async ({ operation, response }) => {
    const url = REQUESTS[operation] ?? ''
    const found = await fetch(demo.url + url)
    const answer = settle(await found.text())
    expect(found.status, JSON.stringify(answer)).toBe(200)
    expect(response.parse(answer)).toEqual(answer)
    expect(JSON.stringify(answer)).not.toMatch(/^\[\]$|"data":\[\]/)
    if (process.env.RECORD_EXAMPLES === undefined) expect({ url, answer }).toEqual(exampleAnswers[operation])
    else exampleAnswers[operation] = { url, answer }
  })

  it('exist for exactly these operations', () => {
    const names = inJson.map(({ operation }) => operation)
    const sorted = Object.fromEntries(names.map((name) => [name, exampleAnswers[name]]))
    if (process.env.RECORD_EXAMPLES !== undefined) writeFileSync(EXAMPLES_FILE, `${JSON.stringify(sorted, null, 2)}\n`)
    expect(Object.keys(exampleAnswers).sort()).toEqual([...names].sort())
  })
})
