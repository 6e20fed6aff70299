import { MOST_SYMBOL } from '../../shared/datasets/treasury.ts'
import type { TreasuryFlowRow } from '../../shared/datasets/treasury-flows.ts'
import { toId } from '../../shared/ids.ts'
import type { Dao } from '../../shared/registry/entities.ts'
import { classifyTransfers, type Flow, type FlowFacts, type KnownAsset } from './classify.ts'
import type { ActedIn, Transfer } from './transfer.ts'
import { completeWraps } from './wrapped-coins.ts'

/**
 * Returns the rows of a DAO from complete transactions. Equal transfers of a transaction are numbered from 0 on, so their
 * order in the source does not matter.
 */
export function toFlowRows(
  dao: Pick<Dao, 'id' | 'key'>,
  transfers: readonly Transfer[],
  actedIn: ActedIn,
  facts: FlowFacts,
): TreasuryFlowRow[] {
  const occurrences = new Map<string, number>()
  return classifyTransfers(completeWraps(transfers), actedIn, facts).map((flow) => {
    const { transfer } = flow
    const { chain, transactionHash, contractAddress, sender, recipient, baseUnits } = transfer
    const key = [chain, transactionHash, contractAddress, sender, recipient, baseUnits].join(' ')
    const occurrence = occurrences.get(key) ?? 0
    occurrences.set(key, occurrence + 1)
    return toRow(dao, flow, { occurrence, asset: facts.findAsset(chain, contractAddress) })
  })
}

function toRow(
  dao: Pick<Dao, 'id' | 'key'>,
  flow: Flow,
  { occurrence, asset }: { readonly occurrence: number; readonly asset: KnownAsset | undefined },
): TreasuryFlowRow {
  const { transfer, wallet, counterparty, direction, leg, kind, rule, label, category } = flow
  const { chain, transactionHash } = transfer
  return {
    dao: dao.key,
    recorded_at: new Date(transfer.time * 1000).toISOString(),
    chain,
    block_number: transfer.blockNumber,
    transaction_hash: transactionHash,
    contract_address: transfer.contractAddress,
    sender: transfer.sender,
    recipient: transfer.recipient,
    base_units: String(transfer.baseUnits),
    occurrence,
    symbol: asset?.symbol ?? cutSymbol(transfer.symbol),
    decimals: asset?.decimals ?? transfer.decimals,
    wallet,
    counterparty,
    counterparty_label: label,
    direction,
    leg: leg ?? '',
    kind,
    rule,
    category,
    swap_group: direction === 'swap' ? toId('swap', dao.id, chain, transactionHash, wallet) : '',
    provider: transfer.provider,
  }
}

/** Symbols are texts of strangers: cut at a character, so that no half of a pair remains. */
const cutSymbol = (symbol: string): string =>
  symbol.length <= MOST_SYMBOL ? symbol : symbol.slice(0, MOST_SYMBOL).replace(/[\ud800-\udbff]$/, '')
