import { z } from 'zod'
import { DataError } from '../../../shared/errors.ts'
import { toBatches } from '../../../shared/group-by.ts'
import type { Transfer } from '../../flows/transfer.ts'
import { WRAPPED_COINS } from '../../flows/wrapped-coins.ts'
import type { ProviderContext } from '../../job/define-job.ts'
import { checkAnswer } from '../answer.ts'
import type { TransferReader, TransferReading, TransferRequest, TransferSource } from '../contracts/transfers.ts'
import { readLogTimes } from './logs/block-times.ts'
import { findBlockAt } from './logs/find-block.ts'
import { type ChainReader, openReaders, type Readers, requireReader } from './logs/follow.ts'
import { type ReadPage, TooWide } from './logs/log-pages.ts'
import { type PageRange, requestLogs, toResult } from './logs/log-request.ts'
import { type Node, type RpcLog, toLag } from './logs/node.ts'
import { readTokenFacts, type TokenFacts } from './token-facts.ts'
import {
  type DecodedTransfers,
  decodeTransfers,
  SAFE_TOPICS,
  type TimedLog,
  TRANSFER,
  WRAP_TOPICS,
} from './transfer-events.ts'

/** Nodes limit the size of a filter. */
const ACCOUNTS_PER_FILTER = 100
/** Limit of unknown contracts whose decimals one reading requests: anyone can create contracts. */
const MOST_CONTRACTS = 50

/**
 * Transfers from the nodes in RPC_URLS: of tokens, and the native ones that Safes log. Native transfers of other accounts
 * are in no log, so a reading never has all of them. All accounts of a chain are read together. Only final blocks are
 * read.
 */
export function openNodeTransfers(context: ProviderContext): TransferSource {
  const readers = openReaders(context)
  const facts = new Map<string, TokenFacts>()
  return {
    name: 'node',
    readsTogether: true,
    hasNative: false,
    has: (chain) => readers.has(chain),
    open: () => openReader(readers, facts),
  }
}

function openReader(readers: Readers, facts: Map<string, TokenFacts>): TransferReader {
  let isSpent = false
  return {
    isSpent: () => isSpent,
    async read(request) {
      const reading = await readAccounts(requireReader(readers, request.chain), request, facts)
      isSpent ||= !reading.isComplete
      return reading
    },
  }
}

async function readAccounts(
  { node, mostPerRun }: ChainReader,
  request: TransferRequest,
  facts: Map<string, TokenFacts>,
): Promise<TransferReading> {
  const { chain, from, to, signal } = request
  const head = await node.finalized(signal)
  const lag = toLag(node.rpc, head.timestamp, to)
  if (lag !== undefined) throw lag
  const first = await findBlockAt(node, from / 1000, head, signal)
  const last = (await findBlockAt(node, to / 1000, head, signal)) - 1
  const { logs, end } = await readLogs(node, request, { from: first, to: last, most: mostPerRun })
  const isCut = end < last
  const decoded = decodeTransfers(await withTimes(node, logs, signal), {
    chain,
    wrapper: WRAPPED_COINS[chain]?.emitsTransfers ? undefined : WRAPPED_COINS[chain]?.address,
    provider: 'node',
  })
  return {
    transfers: await withFacts(node, request, decoded, facts),
    actedIn: decoded.actedIn,
    until: isCut ? await findTime(node, end, signal) : Math.min(to, head.timestamp * 1000 + 1000),
    isComplete: !isCut,
    omitted: undefined,
  }
}

/** The time of a block in Unix milliseconds. */
async function findTime(node: Node, number: number, signal: AbortSignal): Promise<number> {
  const block = (await node.blocks([number], signal)).get(number)
  if (block === undefined || block instanceof DataError)
    throw block ?? new DataError('provider_unavailable', `${node.rpc.name}: the node does not have block ${number}`)
  return block.timestamp * 1000
}

/** Reads pages until the range ends or `most` pages and logs are read. */
async function readLogs(
  node: Node,
  request: TransferRequest,
  { from, to, most }: { readonly from: number; readonly to: number; readonly most: number },
) {
  const filters = toFilters(request)
  const readPage: ReadPage<RpcLog> = async (start, end, last) => {
    const page = new Map<string, RpcLog>()
    for (const filter of filters) {
      const logs = await fetchLogs(node, filter, { from: start, to: end, last }, request.signal)
      if (logs instanceof TooWide) return logs
      // A transfer between two of the accounts matches the filters of both directions.
      for (const log of logs) page.set(`${log.blockNumber} ${log.logIndex}`, log)
    }
    return [...page.values()]
  }
  const logs: RpcLog[] = []
  let at = from
  for (let spent = 0; at <= to && spent < most; ) {
    const { found, end } = await node.pager.read(at, to, readPage)
    for (const log of found) logs.push(log)
    spent += filters.length + found.length
    at = end + 1
  }
  return { logs, end: at - 1 }
}

const toTopic = (address: string) => `0x${address.slice(2).padStart(64, '0')}`

/** Places of topics are combined by AND, so each direction needs a request. */
function toFilters({ chain, accounts }: TransferRequest): object[] {
  const coin = WRAPPED_COINS[chain]
  return toBatches([...accounts], ACCOUNTS_PER_FILTER).flatMap((own) => {
    const topics = own.map(toTopic)
    const wraps = { address: coin?.address, topics: [WRAP_TOPICS, topics] }
    return [
      { topics: [[TRANSFER], topics] },
      { topics: [[TRANSFER], null, topics] },
      { address: own, topics: [SAFE_TOPICS] },
      ...(coin === undefined || coin.emitsTransfers ? [] : [wraps]),
    ]
  })
}

const quantity = z
  .string()
  .regex(/^0x[0-9a-f]+$/i)
  .transform(Number)
  .refine(Number.isSafeInteger)
const lowerCase = z.string().transform((text) => text.toLowerCase())
/** The members that nodes write. Topics and data are bytes of any contract, and may be anything. */
const anyLog = z.object({
  address: lowerCase.pipe(z.string().regex(/^0x[0-9a-f]{40}$/)),
  topics: z.array(lowerCase.pipe(z.string().regex(/^0x[0-9a-f]{64}$/))),
  data: lowerCase.pipe(z.string().regex(/^0x(?:[0-9a-f]{2})*$/)),
  blockNumber: quantity,
  transactionHash: lowerCase.pipe(z.string().regex(/^0x[0-9a-f]{64}$/)),
  logIndex: quantity,
  blockTimestamp: quantity.optional().catch(undefined),
  removed: z.boolean().catch(false),
})

async function fetchLogs(node: Node, filter: object, range: PageRange, signal: AbortSignal) {
  const reply = await requestLogs(node.rpc, filter, range, signal)
  if (reply instanceof TooWide) return reply
  const elements = toResult(node.rpc, z.array(z.unknown()), 'eth_getLogs', reply)
  return checkAnswer(z.array(anyLog), elements, { provider: node.rpc.name, path: 'eth_getLogs' })
    .filter(({ removed, blockNumber }) => !removed && blockNumber >= range.from && blockNumber <= range.to)
    .map((log): RpcLog => ({ ...log, blockTimestamp: log.blockTimestamp }))
}

async function withTimes(node: Node, logs: readonly RpcLog[], signal: AbortSignal): Promise<TimedLog[]> {
  const timeOf = await readLogTimes(node, logs, signal)
  return logs.map((log) => {
    const time = timeOf(log.blockNumber)
    if (time instanceof DataError) throw time
    return { ...log, time }
  })
}

/**
 * Adds symbols and decimals of the contracts whose transfers may be stored with a value: those that `needsFacts`, and those
 * in transactions of the accounts. The contracts of unsolicited tokens are not called.
 */
async function withFacts(
  { rpc }: Node,
  { chain, needsFacts, signal }: TransferRequest,
  { transfers, actedIn }: DecodedTransfers,
  facts: Map<string, TokenFacts>,
): Promise<readonly Transfer[]> {
  const toKey = (contract: string) => `${chain}/${contract}`
  const wanted = transfers.filter(
    ({ contractAddress, transactionHash }) =>
      contractAddress !== '' && (needsFacts(contractAddress) || actedIn.has(transactionHash)),
  )
  const unknown = [...new Set(wanted.map(({ contractAddress }) => contractAddress))].filter(
    (contract) => !facts.has(toKey(contract)),
  )
  if (unknown.length > 0)
    for (const [contract, one] of await readTokenFacts(rpc, unknown.slice(0, MOST_CONTRACTS), signal))
      facts.set(toKey(contract), one)
  return transfers.map((one) => ({ ...one, ...facts.get(toKey(one.contractAddress)) }))
}
