import { jsonReply, type Provider, type Reply, type UpstreamRequest } from '../exchange.ts'
import type { Movement } from '../simulated-transfers.ts'
import type { World } from '../world.ts'

/** Chains by EIP-155 number. The chains of a free plan are fewer. */
const CHAINS: Readonly<Record<string, string>> = {
  '1': 'ethereum',
  '10': 'optimism',
  '56': 'bnb',
  '137': 'polygon',
  '250': 'fantom',
  '8453': 'base',
  '42161': 'arbitrum',
  '43114': 'avalanche',
}
const FREE_CHAINS = ['ethereum', 'arbitrum', 'polygon']

/** The most records of an answer. */
const RECORDS = 1000
/** Seconds of a block: equal times of several transactions are in one block. */
const BLOCK_SECONDS = 12

const toBlock = (seconds: number) => Math.floor(seconds / BLOCK_SECONDS)

/** An explorer with the form of Etherscan's API: every answer has status 200. Source: docs/providers.md, section 19. */
const createExplorer = (name: string, chainParameter: string): Provider => ({
  name,
  handle(request, world) {
    const { path, query, plan } = request
    if (path !== '/api') return toError('Missing Or invalid Action name')
    if (!query.get('apikey')) return toError('Missing/Invalid API Key')
    const chain = CHAINS[query.get(chainParameter) ?? '']
    if (chain === undefined) return toError(`Missing or unsupported ${chainParameter} parameter`)
    if (plan === 'free' && !FREE_CHAINS.includes(chain))
      return toError(
        'Free API access is not supported for this chain. Please upgrade your api plan for full chain coverage.',
      )
    if (query.get('action') === 'getblocknobytime') return findBlock(name, request)
    return toList(chain, request, world)
  },
  failure: (status) =>
    status === 429 ? toError('Max calls per sec rate limit reached (3/sec)') : jsonReply({}, status),
  empty: () => jsonReply({ status: '0', message: 'No transactions found', result: [] }),
})

export const etherscan = createExplorer('etherscan', 'chainid')
export const blockscout = createExplorer('blockscout', 'chain_id')

const toError = (says: string): Reply => jsonReply({ status: '0', message: 'NOTOK', result: says })
const toAnswer = (result: unknown): Reply => jsonReply({ status: '1', message: 'OK', result })

function findBlock(name: string, { query, now }: UpstreamRequest): Reply {
  const seconds = Number(query.get('timestamp'))
  if (!(seconds * 1000 <= now)) return toError('Error! Block timestamp too far in the future')
  const block = String(toBlock(seconds))
  return toAnswer(name === 'blockscout' ? { blockNumber: block } : block)
}

function toList(chain: string, { query, now }: UpstreamRequest, world: World): Reply {
  const list = query.get('action')
  const address = (query.get('address') ?? '').toLowerCase()
  const [start, end] = [Number(query.get('startblock') ?? 0), Number(query.get('endblock') ?? 0)]
  const page = Number(query.get('page') ?? 1)
  const offset = Math.min(RECORDS, Number(query.get('offset') ?? RECORDS))
  const [from, to] = [start * BLOCK_SECONDS, Math.min(Math.floor(now / 1000), (end + 1) * BLOCK_SECONDS - 1)]
  const found = world.transfers(chain, address, from, to).filter((one) => one.list === list)
  const records = found.slice((page - 1) * offset, page * offset).map(toRecord)
  if (records.length === 0) return jsonReply({ status: '0', message: 'No transactions found', result: [] })
  return toAnswer(records)
}

function toRecord({ list, hash, time, from, to, value, contract, symbol, decimals, isFailed }: Movement) {
  const own = { blockNumber: String(toBlock(time)), timeStamp: String(time), hash, from, to, value: String(value) }
  switch (list) {
    case 'txlist':
      return {
        ...own,
        isError: isFailed ? '1' : '0',
        txreceipt_status: isFailed ? '0' : '1',
        input: '0x',
        methodId: '0x',
      }
    case 'txlistinternal':
      return { ...own, contractAddress: '', input: '', type: 'call', traceId: '0_1', isError: '0', errCode: '' }
    case 'tokentx':
      return {
        ...own,
        contractAddress: contract,
        tokenName: symbol,
        tokenSymbol: symbol,
        tokenDecimal: String(decimals),
      }
  }
}
