import { z } from 'zod'
import { count, declareProvider, text, url } from './declaration.ts'

/** A list of slugs of chains, separated by commas. */
const chainNames = (chains: string) =>
  z
    .string()
    .default(chains)
    .transform((value) => value.split(',').map((name) => name.trim()))

export const etherscanDeclaration = declareProvider({
  title: 'Etherscan',
  about:
    'transfers of treasuries, with native coins and those that contracts send. Needs a free key. Without one, Blockscout or a node is read instead.',
  settings: {
    ETHERSCAN_API_KEY: text.optional(),
    ETHERSCAN_BASE_URL: url.default('https://api.etherscan.io/v2'),
    ETHERSCAN_REQUESTS_PER_MINUTE: count.default(150),
    ETHERSCAN_CHAINS: chainNames('ethereum,arbitrum,polygon').meta({
      default: 'ethereum,arbitrum,polygon',
      help: 'Chains of the plan, separated by commas. Paid plans also have optimism, base, avalanche and bnb.',
    }),
  },
  toConfig: (s, limits) => ({
    etherscan: {
      ...limits,
      baseUrl: s.ETHERSCAN_BASE_URL,
      requestsPerMinute: s.ETHERSCAN_REQUESTS_PER_MINUTE,
      apiKey: s.ETHERSCAN_API_KEY,
      chains: s.ETHERSCAN_CHAINS,
    },
  }),
  cost: '1 of 100,000 calls a day',
  data: [
    {
      data: 'transfers of treasuries on ethereum, arbitrum and polygon',
      key: 'ETHERSCAN_API_KEY',
      withoutKey: "Blockscout's, or a node's without native transfers",
    },
  ],
  days: [
    {
      day: 'about 700 calls: three for each address, and two for each chain',
      plan: 'free: 3 a second and 100,000 a day; at most 1,000 records per call',
    },
  ],
})

export const blockscoutDeclaration = declareProvider({
  title: 'Blockscout',
  about:
    'transfers of treasuries on chains that Etherscan does not serve, or whose calls fail there. Needs a free key.',
  settings: {
    BLOCKSCOUT_API_KEY: text.optional(),
    BLOCKSCOUT_BASE_URL: url.default('https://api.blockscout.com/v2'),
    BLOCKSCOUT_REQUESTS_PER_MINUTE: count.default(200),
    BLOCKSCOUT_CHAINS: chainNames('ethereum,arbitrum,polygon,optimism,base').meta({
      default: 'ethereum,arbitrum,polygon,optimism,base',
      help: 'Chains that it hosts, separated by commas.',
    }),
  },
  toConfig: (s, limits) => ({
    blockscout: {
      ...limits,
      baseUrl: s.BLOCKSCOUT_BASE_URL,
      requestsPerMinute: s.BLOCKSCOUT_REQUESTS_PER_MINUTE,
      apiKey: s.BLOCKSCOUT_API_KEY,
      chains: s.BLOCKSCOUT_CHAINS,
    },
  }),
  cost: '20 of 100,000 credits a day',
  data: [
    {
      data: 'transfers of treasuries on optimism and base',
      key: 'BLOCKSCOUT_API_KEY',
      withoutKey: "a node's, without native transfers",
    },
  ],
  days: [{ day: 'about 60 calls of 20 credits', plan: 'free: 5 calls a second and 100,000 credits a day' }],
})
