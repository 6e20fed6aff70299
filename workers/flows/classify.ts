import type { FlowDirection, FlowKind } from '../../shared/datasets/treasury-flows.ts'
import { groupBy } from '../../shared/group-by.ts'
import { type ActedIn, type Transfer, ZERO_ADDRESS } from './transfer.ts'

/** The facts about an address. The operator's file has precedence over the known contracts and the registry. */
export interface Counterparty {
  readonly label: string
  /** The kind of transfers with the address. */
  readonly kind?: FlowKind | undefined
  readonly category?: string | undefined
  /** Whether the operator's file has the address. */
  readonly isOperators?: true
}

/** An asset of a list. Decimals are null if the list does not have them. */
export interface KnownAsset {
  readonly symbol: string
  readonly decimals: number | null
}

/** The facts about a DAO that decide the class of its transfers. */
export interface FlowFacts {
  /** Whether the address belongs to the treasury at this time (Unix seconds). */
  isOwn(chain: string, address: string, time: number): boolean
  /** Finds the facts about an address: a counterparty, or the contract of an asset. */
  find(chain: string, address: string): Counterparty | undefined
  /** Whether an asset is known, so that a transfer of it cannot be forged; an empty contract is the native coin. */
  isListed(chain: string, contract: string): boolean
  /** An asset of the registry, or the native coin. */
  findAsset(chain: string, contract: string): KnownAsset | undefined
  /** Whether the address wraps the native coin of the chain. */
  isWrapper(chain: string, address: string): boolean
}

/**
 * The rules that decide a kind, in order: the first match wins. docs/treasury-flows.md has this table, and a test
 * compares them.
 */
export const FLOW_RULES = {
  'zero-quantity': 'spam: nothing was transferred',
  'unlisted-asset':
    "spam: the asset is neither in the registry nor in the operator's file, and no address of the DAO acted in the transaction",
  'own-addresses': 'internal: sender and recipient are wallets of the DAO',
  operator: "the kind that the operator's file has for the counterparty or for the contract of the asset",
  wrap: 'investment: wrapping or unwrapping the native coin',
  shares: 'investment: a swap in which one of the assets was minted or burnt, such as shares of a pool or vault',
  protocol: 'investment: the counterparty is a known contract of a protocol',
  swap: 'swap: a wallet sent and received different assets in one transaction',
  settlement: 'swap: the counterparty is a known exchange, which may settle in another transaction',
  'zero-address': 'mint from or burn to the zero address',
  inflow: 'income: everything else that a wallet received',
  outflow: 'spending: everything else that a wallet sent',
} as const

type FlowRule = keyof typeof FLOW_RULES

/** A classified transfer. */
export interface Flow {
  readonly transfer: Transfer
  readonly wallet: string
  readonly counterparty: string
  readonly direction: FlowDirection
  /** Side of a swap. */
  readonly leg: 'in' | 'out' | undefined
  readonly kind: FlowKind
  readonly rule: FlowRule
  readonly label: string
  readonly category: string
}

interface Side {
  readonly transfer: Transfer
  readonly wallet: string
  readonly counterparty: string
  readonly side: 'in' | 'out'
}

/**
 * Classifies the transfers of a DAO. All transfers of a transaction must be among them, because swaps are recognized by
 * their other legs. Transfers of a wallet to itself, and those without a wallet of the DAO, are dropped.
 */
export function classifyTransfers(transfers: readonly Transfer[], actedIn: ActedIn, facts: FlowFacts): Flow[] {
  const byTransaction = groupBy(transfers, ({ chain, transactionHash }) => `${chain} ${transactionHash}`)
  return [...byTransaction.values()].flatMap((own) => classifyTransaction(own, actedIn, facts))
}

function classifyTransaction(transfers: readonly Transfer[], actedIn: ActedIn, facts: FlowFacts): Flow[] {
  const isOwn = ({ chain, time }: Transfer, address: string) => facts.isOwn(chain, address, time)
  const sides: Side[] = []
  const flows: Flow[] = []
  const hasActed = hasOwnActed(transfers, actedIn, facts)
  for (const transfer of transfers) {
    const { sender, recipient } = transfer
    const [isOut, isIn] = [isOwn(transfer, sender), isOwn(transfer, recipient)]
    if (sender === recipient || (!isOut && !isIn)) continue
    const [wallet, counterparty] = isOut ? [sender, recipient] : [recipient, sender]
    const side: Side = { transfer, wallet, counterparty, side: isOut ? 'out' : 'in' }
    const spam = findSpam(transfer, hasActed, facts)
    if (spam !== undefined) flows.push(toFlow(side, side.side, spam, facts))
    else if (isOut && isIn) flows.push(toFlow(side, 'internal', { kind: 'internal', rule: 'own-addresses' }, facts))
    else sides.push(side)
  }
  for (const own of groupBy(sides, ({ wallet }) => wallet).values()) {
    const isSwap = isSwapOf(own)
    const swapped = isSwap ? classifySwap(own, facts) : undefined
    for (const side of own)
      flows.push(toFlow(side, isSwap ? 'swap' : side.side, swapped ?? classifySide(side, facts), facts))
  }
  return flows
}

interface Verdict {
  readonly kind: FlowKind
  readonly rule: FlowRule
}

function toFlow(side: Side, direction: FlowDirection, { kind, rule }: Verdict, facts: FlowFacts): Flow {
  const { transfer, wallet, counterparty } = side
  const found = facts.find(transfer.chain, counterparty)
  return {
    ...{ transfer, wallet, counterparty, direction, kind, rule },
    leg: direction === 'swap' ? side.side : undefined,
    label: found?.label ?? '',
    category: found?.category ?? '',
  }
}

/**
 * Whether a wallet of the DAO acted in the transaction. The evidence is a call by the wallet, or a listed asset that left
 * it: any contract can claim to transfer its own tokens from the wallet, but a listed asset cannot be forged.
 */
function hasOwnActed(transfers: readonly Transfer[], actedIn: ActedIn, facts: FlowFacts): boolean {
  const [first] = transfers
  if (first === undefined) return false
  const { chain, time, transactionHash } = first
  const actors = actedIn.get(transactionHash)
  if (actors !== undefined && [...actors].some((address) => facts.isOwn(chain, address, time))) return true
  return transfers.some(
    ({ contractAddress, sender, baseUnits }) =>
      baseUnits > 0n && facts.isListed(chain, contractAddress) && facts.isOwn(chain, sender, time),
  )
}

function findSpam(
  { chain, contractAddress, baseUnits }: Transfer,
  hasActed: boolean,
  facts: FlowFacts,
): Verdict | undefined {
  if (baseUnits === 0n) return { kind: 'spam', rule: 'zero-quantity' }
  if (contractAddress !== '' && facts.find(chain, contractAddress)?.kind === 'spam')
    return { kind: 'spam', rule: 'operator' }
  if (hasActed || facts.isListed(chain, contractAddress)) return undefined
  return { kind: 'spam', rule: 'unlisted-asset' }
}

/** Whether the transfers of a wallet in a transaction are an exchange of different assets. */
function isSwapOf(own: readonly Side[]): boolean {
  const assetsOf = (side: 'in' | 'out') =>
    new Set(own.filter((one) => one.side === side).map(({ transfer }) => transfer.contractAddress))
  const [received, sent] = [assetsOf('in'), assetsOf('out')]
  return received.size > 0 && sent.size > 0 && new Set([...received, ...sent]).size > 1
}

/** All legs of a swap have the same kind. */
function classifySwap(own: readonly Side[], facts: FlowFacts): Verdict {
  for (const side of own) {
    const operator = findOperator(side, facts)
    if (operator !== undefined) return operator
  }
  const isWrap = own.some(({ transfer, counterparty }) => facts.isWrapper(transfer.chain, counterparty))
  if (isWrap) return { kind: 'investment', rule: 'wrap' }
  if (own.some(({ counterparty }) => counterparty === ZERO_ADDRESS)) return { kind: 'investment', rule: 'shares' }
  if (own.some((side) => findKnown(side, facts) === 'investment')) return { kind: 'investment', rule: 'protocol' }
  return { kind: 'swap', rule: 'swap' }
}

function classifySide(one: Side, facts: FlowFacts): Verdict {
  const { transfer, counterparty, side } = one
  const operator = findOperator(one, facts)
  if (operator !== undefined) return operator
  if (facts.isWrapper(transfer.chain, counterparty)) return { kind: 'investment', rule: 'wrap' }
  const known = findKnown(one, facts)
  if (known === 'investment') return { kind: 'investment', rule: 'protocol' }
  if (known === 'swap') return { kind: 'swap', rule: 'settlement' }
  if (counterparty === ZERO_ADDRESS) return { kind: side === 'in' ? 'mint' : 'burn', rule: 'zero-address' }
  return side === 'in' ? { kind: 'income', rule: 'inflow' } : { kind: 'spending', rule: 'outflow' }
}

/** The kind in the operator's file: of the counterparty, else of the asset. */
function findOperator({ transfer, counterparty }: Side, facts: FlowFacts): Verdict | undefined {
  const { chain, contractAddress } = transfer
  for (const address of [counterparty, contractAddress]) {
    const found = address === '' ? undefined : facts.find(chain, address)
    if (found?.isOperators && found.kind !== undefined) return { kind: found.kind, rule: 'operator' }
  }
  return undefined
}

const findKnown = ({ transfer, counterparty }: Side, facts: FlowFacts): FlowKind | undefined =>
  facts.find(transfer.chain, counterparty)?.kind
