import { describe, expect, it } from 'vitest'
import { readAccountList } from '../../workers/providers/explorers/account-lists.ts'
import type { Explorer } from '../../workers/providers/explorers/client.ts'

const account = `0x${'a'.repeat(40)}`
const other = `0x${'b'.repeat(40)}`
const hash = (n: number) => `0x${n.toString(16).padStart(64, '0')}`

const record = (block: number, n: number, more: object = {}) => ({
  ...{
    blockNumber: String(block),
    timeStamp: String(1_700_000_000 + block * 12),
    hash: hash(n),
    from: other,
    to: account,
  },
  ...{ value: '5', isError: '0', txreceipt_status: '1', ...more },
})

/** An explorer with these records and at most 1,000 of them in an answer. */
function createExplorer(records: readonly { readonly blockNumber: string }[]) {
  const questions: string[] = []
  const explorer: Explorer = {
    name: 'etherscan',
    blockAt: () => Promise.reject(new Error('not needed')),
    list: (_, { startblock, endblock, page }) => {
      questions.push(`${startblock} ${page}`)
      const found = records.filter(
        ({ blockNumber }) => Number(blockNumber) >= Number(startblock) && Number(blockNumber) <= Number(endblock),
      )
      return Promise.resolve(found.slice((Number(page) - 1) * 1000, Number(page) * 1000))
    },
  }
  return { explorer, questions }
}

const read = (explorer: Explorer, list: 'txlist' | 'txlistinternal' | 'tokentx' = 'txlist') =>
  readAccountList(explorer, list, {
    ...{ chain: 'ethereum', chainId: 1, account, fromBlock: 1, toBlock: 1_000_000 },
    signal: new AbortController().signal,
  })

const hashesOf = (list: Awaited<ReturnType<typeof read>>) =>
  list.rows.map(({ transfer }) => transfer.transactionHash).sort()

describe('readAccountList', () => {
  it('reads windows of 1,000 records, with a block at their edge once', async () => {
    // Blocks of seven records: the first window ends within a block.
    const records = Array.from({ length: 2500 }, (_, n) => record(10 + Math.floor(n / 7), n))
    const { explorer, questions } = createExplorer(records)
    const list = await read(explorer)
    expect(hashesOf(list)).toEqual(records.map((one) => one.hash).sort())
    expect(list.unread).toBe(0)
    expect(questions).toEqual(['1 1', '152 1', '294 1'])
  })

  it('keeps equal records of one transaction', async () => {
    const records = Array.from({ length: 1500 }, (_, n) => record(10 + Math.floor(n / 3), 1))
    expect((await read(createExplorer(records).explorer)).rows).toHaveLength(1500)
  })

  it('reads a block with over 1,000 records by pages, and omits what exceeds 10,000', async () => {
    const before = Array.from({ length: 10 }, (_, n) => record(5, n))
    const busy = Array.from({ length: 2100 }, (_, n) => record(6, 100 + n))
    const after = [record(7, 9999)]
    const list = await read(createExplorer([...before, ...busy, ...after]).explorer)
    expect(list.rows).toHaveLength(2111)
    const flood = Array.from({ length: 10_500 }, (_, n) => record(6, 100 + n))
    const cut = await read(createExplorer([...before, ...flood, ...after]).explorer)
    expect([cut.rows.length, cut.unread]).toEqual([10_011, 1])
    expect(cut.reason).toContain('10000 records')
  })

  it('marks failed transactions, and reads the contract that an internal transaction created', async () => {
    const failed = [record(5, 1, { isError: '1' }), record(5, 2, { txreceipt_status: '0' }), record(5, 3)]
    expect((await read(createExplorer(failed).explorer)).rows.map(({ isFailed }) => isFailed)).toEqual([
      true,
      true,
      false,
    ])
    const created = [record(5, 1, { to: '', contractAddress: other, isError: '0' })]
    const list = await read(createExplorer(created).explorer, 'txlistinternal')
    expect(list.rows.map(({ transfer }) => transfer.recipient)).toEqual([other])
  })

  it('reads token transfers without decimals, and counts unreadable records', async () => {
    const token = { contractAddress: other, tokenSymbol: 'X', tokenDecimal: '' }
    const records = [record(5, 1, token), record(5, 2, { ...token, value: 'none' }), record(5, 3, { tokenSymbol: 'X' })]
    const list = await read(createExplorer(records).explorer, 'tokentx')
    expect(list.rows.map(({ transfer }) => [transfer.symbol, transfer.decimals])).toEqual([['X', null]])
    expect(list.unread).toBe(2)
    expect(list.reason).toMatch(/^tokentx: (value|contractAddress)/)
  })
})
