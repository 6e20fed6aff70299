import { mergeLists } from '../../flows/merge-lists.ts'
import type { Transfer } from '../../flows/transfer.ts'
import type { Omitted, ProviderContext } from '../../job/define-job.ts'
import type { TransferReader, TransferReading, TransferRequest, TransferSource } from '../contracts/transfers.ts'
import { readAccountList } from './account-lists.ts'
import { type Explorer, type ExplorerName, openExplorer } from './client.ts'

/** Share of a job's ten minutes that a run may use. */
const MINUTES_PER_RUN = 3

/** Transfers from an explorer: plain transactions, those of contracts, and tokens (docs/providers.md, section 19). */
export function openExplorerTransfers(context: ProviderContext, name: ExplorerName): TransferSource {
  const { apiKey, chains, requestsPerMinute } = context.config.providers[name]
  const explorer = openExplorer(context, name)
  return {
    name,
    readsTogether: false,
    hasNative: true,
    has: (chain) => apiKey !== undefined && chains.includes(chain),
    open: () => openReader(explorer, MINUTES_PER_RUN * requestsPerMinute),
  }
}

function openReader(explorer: Explorer, most: number): TransferReader {
  let spent = 0
  const counted: Explorer = {
    name: explorer.name,
    list: (...question) => {
      spent += 1
      return explorer.list(...question)
    },
    blockAt: (...question) => {
      spent += 1
      return explorer.blockAt(...question)
    },
  }
  const blocks = new Map<string, Promise<number>>()
  const findBlock = (chainId: number, ms: number, signal: AbortSignal) => {
    const key = `${chainId} ${ms}`
    const block = blocks.get(key) ?? counted.blockAt(chainId, Math.floor(ms / 1000), signal)
    blocks.set(key, block)
    return block
  }
  return {
    isSpent: () => spent >= most,
    async read(request) {
      const { chainId, from, to, signal } = request
      const fromBlock = await findBlock(chainId, from, signal)
      const toBlock = await findBlock(chainId, to, signal)
      return readAccounts(counted, request, { fromBlock, toBlock })
    },
  }
}

async function readAccounts(
  explorer: Explorer,
  { chain, chainId, accounts, from, to, signal }: TransferRequest,
  blocks: { readonly fromBlock: number; readonly toBlock: number },
): Promise<TransferReading> {
  const own = new Set(accounts)
  const lists: Transfer[][] = []
  const actedIn = new Map<string, Set<string>>()
  let omitted: Omitted | undefined
  const isInside = ({ time }: Transfer) => time * 1000 >= from && time * 1000 < to
  for (const account of accounts) {
    const list: Transfer[] = []
    for (const name of ['txlist', 'txlistinternal', 'tokentx'] as const) {
      const found = await readAccountList(explorer, name, { chain, chainId, account, ...blocks, signal })
      if (found.unread > 0) omitted = { count: (omitted?.count ?? 0) + found.unread, reason: found.reason }
      for (const { transfer, isFailed } of found.rows) {
        if (isFailed || !isInside(transfer)) continue
        const { transactionHash, sender, recipient, baseUnits } = transfer
        // A Safe acts in the transactions that call it, an account in those that it sends.
        if (name === 'txlist')
          for (const actor of [sender, recipient]) {
            if (!own.has(actor)) continue
            const actors = actedIn.get(transactionHash) ?? new Set()
            actedIn.set(transactionHash, actors.add(actor))
          }
        // Most calls move no coins. A token transfer of nothing is stored as spam.
        if (baseUnits > 0n || name === 'tokentx') list.push(transfer)
      }
    }
    lists.push(list)
  }
  return { transfers: mergeLists(lists), actedIn, until: to, isComplete: true, omitted }
}
