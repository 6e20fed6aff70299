import type { FlowKind } from '../../shared/datasets/treasury-flows.ts'

interface KnownContract {
  readonly chain: string
  readonly address: string
  readonly label: string
  readonly kind: FlowKind
  readonly source: string
}

/** Contracts of protocols that treasuries use, each with the document that has its address. */
export const KNOWN_CONTRACTS: readonly KnownContract[] = [
  {
    chain: 'ethereum',
    address: '0x9008d19f58aabd9ed0d60971565aa8510560ab41',
    label: 'CoW Protocol: settlement',
    kind: 'swap',
    source: 'https://github.com/cowprotocol/contracts, networks.json',
  },
  {
    chain: 'arbitrum',
    address: '0x9008d19f58aabd9ed0d60971565aa8510560ab41',
    label: 'CoW Protocol: settlement',
    kind: 'swap',
    source: 'https://github.com/cowprotocol/contracts, networks.json',
  },
  {
    chain: 'ethereum',
    address: '0xae7ab96520de3a18e5e111b5eaab095312d7fe84',
    label: 'Lido: stETH',
    kind: 'investment',
    source: 'https://docs.lido.fi/deployed-contracts',
  },
  {
    chain: 'ethereum',
    address: '0x7f39c581f595b53c5cb19bd0b3f8da6c935e2ca0',
    label: 'Lido: wstETH',
    kind: 'investment',
    source: 'https://docs.lido.fi/deployed-contracts',
  },
  {
    chain: 'ethereum',
    address: '0x889edc2edab5f40e902b864ad4d7ade8e412f9b1',
    label: 'Lido: withdrawal queue',
    kind: 'investment',
    source: 'https://docs.lido.fi/deployed-contracts',
  },
  {
    chain: 'ethereum',
    address: '0x7d2768de32b0b80b7a3454c06bdac94a69ddc7a9',
    label: 'Aave V2: lending pool',
    kind: 'investment',
    source: 'https://github.com/bgd-labs/aave-address-book, AaveV2Ethereum',
  },
  {
    chain: 'ethereum',
    address: '0x87870bca3f3fd6335c3f4ce8392d69350b4fa4e2',
    label: 'Aave V3: pool',
    kind: 'investment',
    source: 'https://github.com/bgd-labs/aave-address-book, AaveV3Ethereum',
  },
  {
    chain: 'ethereum',
    address: '0xc3d688b66703497daa19211eedff47f25384cdc3',
    label: 'Compound III: USDC',
    kind: 'investment',
    source: 'https://github.com/compound-finance/comet, deployments/mainnet/usdc/roots.json',
  },
  {
    chain: 'ethereum',
    address: '0xba12222222228d8ba445958a75a0704d566bf2c8',
    label: 'Balancer V2: vault',
    kind: 'investment',
    source: 'https://docs.balancer.fi, deployment addresses',
  },
]
