import { isWallet, type TreasuryFlowRow, treasuryFlows } from '../../../shared/datasets/treasury-flows.ts'
import type { Dao } from '../../../shared/registry/entities.ts'
import type { Registry } from '../../../shared/registry/registry.ts'
import { type KnownAddresses, toKnownAddresses } from '../../flows/flow-facts.ts'
import type { Candidate, Range, Run } from '../../job/define-job.ts'

/** The wallets of a DAO on one chain. */
export interface ChainWallets {
  readonly chain: string
  /** EIP-155 number. */
  readonly chainId: number
  readonly accounts: readonly string[]
}

/** A DAO with the wallets whose transfers are collected. */
export interface FlowDao extends Dao {
  readonly wallets: readonly ChainWallets[]
  readonly known: KnownAddresses
}

/** Returns the live DAOs with wallets on EVM chains. Contracts with revenue and payees are not wallets. */
export function toFlowDaos(registry: Registry): FlowDao[] {
  const known = toKnownAddresses(registry)
  return treasuryFlows.entities(registry).map((dao) => {
    const wallets = dao.treasuries.filter(isWallet)
    const chains = [...new Set(wallets.map(({ chain }) => chain))]
    const onChains = chains.flatMap((chain): ChainWallets[] => {
      const chainId = registry.chainBySlug.get(chain)?.chainId
      const accounts = wallets.filter((one) => one.chain === chain).map(({ address }) => address)
      return typeof chainId === 'number' ? [{ chain, chainId, accounts }] : []
    })
    return { ...dao, wallets: onChains, known }
  })
}

export type FlowRequest = Pick<
  Run<unknown, FlowDao>,
  'entities' | 'slot' | 'state' | 'log' | 'signal' | 'refuse' | 'omit' | 'putOff' | 'noteRead' | 'noteMore'
>

/** Classified transfers of treasuries. */
export interface FlowSource {
  /** Fetches the transfers since the last run (from the state), at most the number that one run may read. */
  fetchNew(request: FlowRequest): Promise<Candidate<TreasuryFlowRow>[]>
  /** Fetches the transfers in a range, or the next part of them. */
  fetchHistory(request: FlowRequest & { readonly range: Range }): Promise<Candidate<TreasuryFlowRow>[]>
}
