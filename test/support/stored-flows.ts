import { toDeriveParams } from '../../shared/datasets/define-dataset.ts'
import type { TreasuryFlowRow } from '../../shared/datasets/treasury-flows.ts'
import { treasuryFlows } from '../../shared/datasets/treasury-flows.ts'
import { addCoverage } from '../../shared/ledger/tables.ts'
import type { Database } from '../../shared/store/store.ts'

const DAY = 86_400_000

export const toFlowAddress = (text: string) => `0x${Buffer.from(text).toString('hex').padEnd(40, '0')}`
const toHash = (n: number) => `0x${n.toString(16).padStart(64, '0')}`

/** A transfer of 18 decimals; `n` is its transaction. */
export function toFlow(
  n: number,
  {
    at,
    ...own
  }: Partial<TreasuryFlowRow> & Pick<TreasuryFlowRow, 'dao' | 'wallet' | 'counterparty' | 'kind'> & { at: string },
): TreasuryFlowRow {
  const isOut = own.kind === 'spending' || own.kind === 'internal' || own.leg === 'out'
  const [sender, recipient] = isOut ? [own.wallet, own.counterparty] : [own.counterparty, own.wallet]
  return {
    ...{ recorded_at: at, chain: 'ethereum', block_number: n, transaction_hash: toHash(n), sender, recipient },
    ...{ contract_address: '', symbol: 'ETH', decimals: 18, base_units: '0', occurrence: 0, counterparty_label: '' },
    ...{ leg: '', rule: isOut ? 'outflow' : 'inflow', category: '', swap_group: '', provider: 'node' },
    direction: isOut ? 'out' : 'in',
    ...own,
  }
}

/** Stores transfers and the sums of their days, as a run does. */
export async function storeFlowRows(
  db: Database,
  rows: readonly TreasuryFlowRow[],
  every: Readonly<Record<string, unknown>> = {},
): Promise<void> {
  await db.insert({ table: 'treasury_flows', rows, every })
  await deriveFlowDays(db, [...new Set(rows.map(({ dao }) => dao))])
}

/** Computes the sums of all days of DAOs whose transfers were stored by other means. */
export async function deriveFlowDays(db: Database, daos: readonly number[]): Promise<void> {
  const params = toDeriveParams({ entities: daos, read: [], slot: 0 })
  for (const { name, sql } of treasuryFlows.derive ?? []) await db.command({ name, sql, params })
}

/** Marks the transfers of days as read: those that start in a range in Unix milliseconds. */
export async function storeReadDays(db: Database, dao: number, from: number, to: number): Promise<void> {
  const report = { entity: dao, state: 'stored' as const, provider: 'node', seconds: 86_400 }
  await addCoverage(db, treasuryFlows, [{ ...report, first: from / DAY, last: to / DAY - 1 }])
}
