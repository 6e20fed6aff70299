import { toEventSelector } from 'viem/utils'
import { groupBy } from '../../../shared/group-by.ts'
import { mergeLists } from '../../flows/merge-lists.ts'
import { type Transfer, ZERO_ADDRESS } from '../../flows/transfer.ts'
import type { RpcLog } from './logs/node.ts'

const toTopic = (signature: string) => toEventSelector(`event ${signature}`)

/**
 * The events of transfers (docs/providers.md, section 19). `ExecutionSuccess` has its hash in a topic or in the data, by
 * the version of the Safe.
 */
export const TRANSFER = toTopic('Transfer(address,address,uint256)')
const DEPOSIT = toTopic('Deposit(address,uint256)')
const WITHDRAWAL = toTopic('Withdrawal(address,uint256)')
const RECEIVED = toTopic('SafeReceived(address,uint256)')
const SUCCESS = toTopic('ExecutionSuccess(bytes32,uint256)')
const FAILURE = toTopic('ExecutionFailure(bytes32,uint256)')
const EXECUTED = toTopic(
  'SafeMultiSigTransaction(address,uint256,bytes,uint8,uint256,uint256,uint256,address,address,bytes,bytes)',
)
const MODULE_SUCCESS = toTopic('ExecutionFromModuleSuccess(address)')
const MODULE_FAILURE = toTopic('ExecutionFromModuleFailure(address)')
const EXECUTED_BY_MODULE = toTopic('SafeModuleTransaction(address,address,uint256,bytes,uint8)')

/** The events with which a Safe logs calls and their results: those of its owners, and those of its modules. */
const CALL_TOPICS: readonly string[] = [SUCCESS, FAILURE, EXECUTED]
const MODULE_TOPICS: readonly string[] = [MODULE_SUCCESS, MODULE_FAILURE, EXECUTED_BY_MODULE]

const EXECUTION_TOPICS = [...CALL_TOPICS, ...MODULE_TOPICS]

export const WRAP_TOPICS = [DEPOSIT, WITHDRAWAL]
export const SAFE_TOPICS = [RECEIVED, ...EXECUTION_TOPICS]

/** A log with the time of its block, in Unix seconds. */
export interface TimedLog extends RpcLog {
  readonly time: number
}

/** The chain of the logs, its wrapped coin if that emits no transfers, and the name of the source. */
export interface LogOrigin {
  readonly chain: string
  readonly wrapper: string | undefined
  readonly provider: string
}

/** The transfers of logs, and the transactions that Safes executed. */
export interface DecodedTransfers {
  readonly transfers: readonly Transfer[]
  readonly actedIn: ReadonlyMap<string, ReadonlySet<string>>
}

export function decodeTransfers(logs: readonly TimedLog[], origin: LogOrigin): DecodedTransfers {
  const inOrder = [...logs].sort((a, b) => a.blockNumber - b.blockNumber || a.logIndex - b.logIndex)
  const tokens: Transfer[] = []
  const received: Transfer[] = []
  const sent: Transfer[] = []
  const actedIn = new Map<string, Set<string>>()
  for (const log of inOrder) {
    const token = log.address === origin.wrapper ? decodeWrap(log, origin) : decodeToken(log, origin)
    if (token !== undefined) tokens.push(token)
    if (log.topics[0] === RECEIVED) received.push(...decodeReceived(log, origin))
  }
  const ofSafes = inOrder.filter(({ topics: [first = ''] }) => EXECUTION_TOPICS.includes(first))
  for (const own of groupBy(ofSafes, ({ address, transactionHash }) => `${address} ${transactionHash}`).values()) {
    const decoded = [decodeExecutions(own, origin), decodeModules(own, origin)]
    for (const { transfers } of decoded) sent.push(...transfers)
    const [log] = own
    if (log === undefined || !decoded.some(({ hasSucceeded }) => hasSucceeded)) continue
    const actors = actedIn.get(log.transactionHash) ?? new Set()
    actedIn.set(log.transactionHash, actors.add(log.address))
  }
  // A payment of a Safe to another one is in the events of both.
  return { transfers: [...tokens, ...mergeLists([received, sent])], actedIn }
}

/** The members of `SafeMultiSigTransaction` in its data; the places of its texts, which no one reads, are among them. */
const EXECUTED_WORDS = 11
const WORD_DIGITS = 64

/** The first words of the data: its length is up to any contract, and no event needs more of them. */
const wordsOf = ({ data }: RpcLog): readonly string[] =>
  data.slice(2, 2 + (EXECUTED_WORDS + 1) * WORD_DIGITS).match(/.{64}/g) ?? []
const toAddress = (word: string | undefined) => `0x${(word ?? '').slice(-40).padStart(40, '0')}`
const toNumber = (word: string | undefined) => BigInt(`0x${word || '0'}`)

type Parties = Pick<Transfer, 'contractAddress' | 'sender' | 'recipient' | 'baseUnits'>

const toTransfer = (log: TimedLog, { chain, provider }: LogOrigin, parties: Parties): Transfer => ({
  ...{ chain, blockNumber: log.blockNumber, time: log.time, transactionHash: log.transactionHash, provider },
  ...parties,
  symbol: '',
  decimals: parties.contractAddress === '' ? 18 : null,
})

/** An ERC-721 transfer has the same topic but its id in a fourth one, and no data. */
function decodeToken(log: TimedLog, origin: LogOrigin): Transfer | undefined {
  const [first, from, to] = log.topics
  const words = wordsOf(log)
  if (first !== TRANSFER || log.topics.length !== 3 || words.length !== 1) return undefined
  const parties = { sender: toAddress(from), recipient: toAddress(to), baseUnits: toNumber(words[0]) }
  return toTransfer(log, origin, { contractAddress: log.address, ...parties })
}

/** The token leg of a wrap: between the account and the wrapping contract. */
function decodeWrap(log: TimedLog, origin: LogOrigin): Transfer | undefined {
  const [first, party] = log.topics
  if (first === TRANSFER) return decodeToken(log, origin)
  if ((first !== DEPOSIT && first !== WITHDRAWAL) || log.topics.length !== 2) return undefined
  const [sender, recipient] = first === DEPOSIT ? [log.address, toAddress(party)] : [toAddress(party), log.address]
  const parties = { contractAddress: log.address, sender, recipient, baseUnits: toNumber(wordsOf(log)[0]) }
  return toTransfer(log, origin, parties)
}

function decodeReceived(log: TimedLog, origin: LogOrigin): Transfer[] {
  const [, from] = log.topics
  if (log.topics.length !== 2 || wordsOf(log).length !== 1) return []
  const parties = { sender: toAddress(from), recipient: log.address, baseUnits: toNumber(wordsOf(log)[0]) }
  return [toTransfer(log, origin, { contractAddress: '', ...parties })]
}

/** The native payment of a Safe to the address in a word, if there is one. */
function toPayment(log: TimedLog, origin: LogOrigin, word: string | undefined, baseUnits: bigint): Transfer[] {
  const recipient = toAddress(word)
  if (baseUnits === 0n || recipient === ZERO_ADDRESS) return []
  return [toTransfer(log, origin, { contractAddress: '', sender: log.address, recipient, baseUnits })]
}

/** Positions of the members of `SafeMultiSigTransaction` in its data. */
const [TO, VALUE, OPERATION, GAS_TOKEN, REFUND_RECEIVER] = [0, 1, 3, 7, 8]
const CALL = 0n

/**
 * Native payments of a Safe in a transaction. Its call is logged before it is known whether it succeeds. A plain Safe
 * logs only the success, and the payments of a multisend are packed in its data: neither are found.
 */
function decodeExecutions(logs: readonly TimedLog[], origin: LogOrigin) {
  const transfers: Transfer[] = []
  let hasSucceeded = false
  let call: readonly string[] | undefined
  for (const log of logs) {
    const [first = ''] = log.topics
    if (!CALL_TOPICS.includes(first)) continue
    const words = wordsOf(log)
    if (first === EXECUTED) {
      call = log.topics.length === 1 && words.length >= EXECUTED_WORDS ? words : undefined
      continue
    }
    // The hash of a result is its second topic or its first word.
    if (log.topics.length > 2 || log.topics.length + words.length !== 3) continue
    const pay = (word: string | undefined, baseUnits: bigint) =>
      transfers.push(...toPayment(log, origin, word, baseUnits))
    if (call !== undefined && first === SUCCESS && toNumber(call[OPERATION]) === CALL)
      pay(call[TO], toNumber(call[VALUE]))
    // A refund of gas is paid also for a failed call.
    if (call !== undefined && toAddress(call[GAS_TOKEN]) === ZERO_ADDRESS)
      pay(call[REFUND_RECEIVER], toNumber(words.at(-1)))
    hasSucceeded ||= first === SUCCESS
    call = undefined
  }
  return { transfers, hasSucceeded }
}

/** Positions of the members of `SafeModuleTransaction` in its data, and the number of its first words. */
const [MODULE_TO, MODULE_VALUE, MODULE_OPERATION, MODULE_WORDS] = [1, 2, 4, 5]

/**
 * Native payments of a Safe by its modules in a transaction. The L2 version logs the call, then its result. A module may be
 * called again during its call, so a result belongs to the last call of its module without one. A plain Safe logs only the
 * result: its payment is not found, but the Safe acted in the transaction.
 */
function decodeModules(logs: readonly TimedLog[], origin: LogOrigin) {
  const transfers: Transfer[] = []
  let hasSucceeded = false
  const open = new Map<string, (readonly string[])[]>()
  for (const log of logs) {
    const [first = '', topic] = log.topics
    if (!MODULE_TOPICS.includes(first)) continue
    const words = wordsOf(log)
    if (first === EXECUTED_BY_MODULE) {
      const module = toAddress(words[0])
      const calls = open.get(module) ?? []
      open.set(module, calls)
      if (log.topics.length === 1 && words.length > MODULE_WORDS) calls.push(words)
      continue
    }
    if (log.topics.length !== 2 || words.length !== 0) continue
    const call = open.get(toAddress(topic))?.pop()
    if (first === MODULE_FAILURE) continue
    hasSucceeded = true
    if (call !== undefined && toNumber(call[MODULE_OPERATION]) === CALL)
      transfers.push(...toPayment(log, origin, call[MODULE_TO], toNumber(call[MODULE_VALUE])))
  }
  return { transfers, hasSucceeded }
}
