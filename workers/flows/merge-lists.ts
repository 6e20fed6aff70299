import type { Transfer } from './transfer.ts'

const toKey = ({ chain, transactionHash, contractAddress, sender, recipient, baseUnits }: Transfer) =>
  [chain, transactionHash, contractAddress, sender, recipient, baseUnits].join(' ')

/**
 * Merges lists that may contain the same transfers, such as those of two accounts with a transfer between them. Equal
 * transfers within a list are several transfers of one transaction, so of each the list with the most of them counts.
 */
export function mergeLists(lists: Iterable<readonly Transfer[]>): Transfer[] {
  const most = new Map<string, Transfer[]>()
  for (const list of lists) {
    const own = new Map<string, Transfer[]>()
    for (const one of list) {
      const key = toKey(one)
      const equal = own.get(key)
      if (equal === undefined) own.set(key, [one])
      else equal.push(one)
    }
    for (const [key, equal] of own) if (equal.length > (most.get(key)?.length ?? 0)) most.set(key, equal)
  }
  return [...most.values()].flat()
}
