import { z } from 'zod'
import type { Transfer } from '../../flows/transfer.ts'
import type { Explorer } from './client.ts'

const digits = z.string().regex(/^\d{1,15}$/)
const integer = digits.transform(Number)
const address = z
  .string()
  .transform((text) => text.toLowerCase())
  .pipe(z.string().regex(/^0x[0-9a-f]{40}$/, 'must be an address'))
const hash = z
  .string()
  .transform((text) => text.toLowerCase())
  .pipe(z.string().regex(/^0x[0-9a-f]{64}$/, 'must be a hash'))
const amount = z.string().regex(/^\d{1,78}$/, 'must be an integer')
const noAddress = z.literal('').nullish()

const element = z.object({ blockNumber: integer, timeStamp: integer, hash, from: address, value: amount })
const flag = z.string().optional()
const transaction = element.extend({ to: z.union([address, noAddress]), isError: flag, txreceipt_status: flag })
/** A contract that is created has no `to`, but an address. Blockscout calls the hash `transactionHash`. */
const internal = z.preprocess(
  (one) =>
    isObject(one) && !('hash' in one) && 'transactionHash' in one ? { ...one, hash: one.transactionHash } : one,
  element.extend({
    to: z.union([address, noAddress]),
    contractAddress: z.union([address, noAddress]).optional(),
    isError: flag,
  }),
)
const tokenTransfer = element.extend({
  to: address,
  contractAddress: address,
  tokenSymbol: z.string().catch(''),
  tokenDecimal: z
    .string()
    .regex(/^\d{1,2}$/)
    .transform(Number)
    .pipe(z.int().max(77))
    .nullable()
    .catch(null),
})

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null

/** The most records of an answer on the free plan. */
const RECORDS = 1000
/** Pages of a single block, which no narrower range can split. More records of it are omitted. */
const PAGES_OF_BLOCK = 10

/** A row of a list, and whether it only shows that the account acted. */
interface Row {
  readonly transfer: Transfer
  readonly isFailed: boolean
}

export interface AccountList {
  readonly rows: readonly Row[]
  /** Elements that cannot be read, and the reason of one of them. */
  readonly unread: number
  readonly reason: string
}

interface ListRequest {
  readonly chain: string
  readonly chainId: number
  readonly account: string
  /** Both inclusive. */
  readonly fromBlock: number
  readonly toBlock: number
  readonly signal: AbortSignal
}

/** The lists of an account, with the reading of an element. */
const LISTS = {
  txlist: (one: unknown) => {
    const { isError, txreceipt_status: receipt, ...read } = transaction.parse(one)
    return { ...read, contract: '', symbol: '', decimals: 18, isFailed: isError === '1' || receipt === '0' }
  },
  txlistinternal: (one: unknown) => {
    const { isError, contractAddress, to, ...read } = internal.parse(one)
    const recipient = to || contractAddress
    return { ...read, to: recipient, contract: '', symbol: '', decimals: 18, isFailed: isError === '1' }
  },
  tokentx: (one: unknown) => {
    const { contractAddress, tokenSymbol, tokenDecimal, ...read } = tokenTransfer.parse(one)
    return { ...read, contract: contractAddress, symbol: tokenSymbol, decimals: tokenDecimal, isFailed: false }
  },
} as const

export type ListName = keyof typeof LISTS

/**
 * Reads a list of an account in a range of blocks. An answer has at most 1,000 records. A full answer may end within a
 * block, so its last block is read again as the first one of the next request.
 */
export async function readAccountList(explorer: Explorer, list: ListName, request: ListRequest): Promise<AccountList> {
  const found: unknown[] = []
  const { fromBlock, toBlock } = request
  let omitted = 0
  for (let start = fromBlock; start <= toBlock; ) {
    const records = await fetchPage(explorer, list, request, { start, end: toBlock, page: 1 })
    const last = records.length < RECORDS ? undefined : blockOf(records.at(-1))
    if (last === undefined) {
      found.push(...records)
      break
    }
    if (last > start) {
      found.push(...records.filter((one) => blockOf(one) !== last))
      start = last
      continue
    }
    const { own, isCut } = await readBlock(explorer, list, request, start)
    found.push(...own)
    if (isCut) omitted += 1
    start += 1
  }
  const rows: Row[] = []
  let reason = omitted === 0 ? '' : `a block with over ${RECORDS * PAGES_OF_BLOCK} records of one account`
  for (const one of found) {
    const read = readElement(list, one, { chain: request.chain, provider: explorer.name })
    if (typeof read === 'string') [omitted, reason] = [omitted + 1, read]
    else if (read !== undefined) rows.push(read)
  }
  return { rows, unread: omitted, reason }
}

interface Page {
  readonly start: number
  readonly end: number
  readonly page: number
}

const fetchPage = (explorer: Explorer, action: ListName, request: ListRequest, { start, end, page }: Page) =>
  explorer.list(
    request.chainId,
    {
      ...{ module: 'account', action, address: request.account, startblock: start, endblock: end },
      ...{ page, offset: RECORDS, sort: 'asc' },
    },
    request.signal,
  )

/** Reads the pages of a block with more records than an answer. */
async function readBlock(explorer: Explorer, list: ListName, request: ListRequest, block: number) {
  const own: unknown[] = []
  for (let page = 1; page <= PAGES_OF_BLOCK; page += 1) {
    const records = await fetchPage(explorer, list, request, { start: block, end: block, page })
    own.push(...records)
    if (records.length < RECORDS) return { own, isCut: false }
  }
  return { own, isCut: true }
}

const numbered = z.object({ blockNumber: integer })

const blockOf = (record: unknown): number | undefined => numbered.safeParse(record).data?.blockNumber

/** Returns the row; a text with the reason if it cannot be read, undefined if it moves nothing to an address. */
function readElement(
  list: ListName,
  one: unknown,
  { chain, provider }: { readonly chain: string; readonly provider: string },
): Row | string | undefined {
  try {
    const { blockNumber, timeStamp, hash, from, to, value, contract, symbol, decimals, isFailed } = LISTS[list](one)
    if (!to) return undefined
    const place = { chain, blockNumber, time: timeStamp, transactionHash: hash, contractAddress: contract }
    return {
      transfer: { ...place, sender: from, recipient: to, baseUnits: BigInt(value), symbol, decimals, provider },
      isFailed,
    }
  } catch (error) {
    if (!(error instanceof z.ZodError)) throw error
    const [issue] = error.issues
    return `${list}: ${issue?.path.join('.')}: ${issue?.message}`
  }
}
