import { describe, expect, it } from 'vitest'
import { parseConfig } from '../../shared/config/config.ts'
import type { Token } from '../../shared/registry/entities.ts'
import type { HttpRequest, HttpSettings } from '../../workers/http/client.ts'
import { toHistoryShare } from '../../workers/http/limits.ts'
import type { ProviderContext } from '../../workers/job/define-job.ts'
import { toCallsPerSlot } from '../../workers/providers/moralis/budget.ts'
import { moralisSwaps } from '../../workers/providers/moralis/trades.ts'
import { createState, toRun } from '../support/run.ts'
import { silent } from '../support/silent.ts'

const HOUR = 3_600_000
const SLOT = Date.parse('2024-05-06T07:00:00Z')

/** The provider with a free plan, or the given units. `page` returns the response to a request. */
function open(page: (request: HttpRequest) => Promise<unknown>, units = '40000') {
  const config = parseConfig({ MORALIS_API_KEY: 'key', MORALIS_UNITS_PER_DAY: units })
  const opened: HttpSettings[] = []
  const http = {
    open: (settings: HttpSettings) => {
      opened.push(settings)
      return { json: page }
    },
  }
  const context = { config, log: silent, http, db: { rows: async () => [] } } as unknown as ProviderContext
  return { config, opened, source: moralisSwaps.connect(context) }
}

const toToken = (key: number) => ({ key, id: `token-${key}`, name: `T${key}`, chain: 'ethereum' }) as Token

describe('daily units of Moralis', () => {
  it.each(['40000', '8000', '2500'])('of %s are divided between slots and history without overlap', (units) => {
    const { config, opened } = open(async () => undefined, units)
    const settings = opened[0] ?? expect.unreachable()
    const hours = 24 * (toCallsPerSlot(config, 'holders') + toCallsPerSlot(config, 'swaps'))
    const history = toHistoryShare(settings, 0.5).requestsPerDay ?? Number.NaN
    expect(hours + history).toBeLessThanOrEqual(settings.requestsPerDay ?? 0)
    expect(history).toBeGreaterThan(0)
  })

  it('are not granted again to a retried slot, but to the next slot', async () => {
    let calls = 0
    const { config, source } = open(async () => {
      calls += 1
      return { cursor: null, result: [] }
    })
    const perSlot = toCallsPerSlot(config, 'swaps')
    const entities = Array.from({ length: perSlot + 5 }, (_, key) => toToken(key))
    const state = createState()
    const collect = async (slot: number) => {
      calls = 0
      await source.fetchNew(toRun({ entities, state, slot }).run)
      return calls
    }
    expect([await collect(SLOT), await collect(SLOT), await collect(SLOT + HOUR)]).toEqual([perSlot, 0, perSlot])
  })
})

describe('unreadable swap', () => {
  it.each([
    ['null', null],
    ['without a hash', { transactionType: 'buy', pairAddress: '0xpool' }],
    ['with a pool that is a number', { transactionHash: '0x9', transactionType: 'buy', pairAddress: 7 }],
  ])('leaves a swap that is %s to the row validation, and keeps the others', async (_, bad) => {
    const blockTimestamp = new Date(SLOT - HOUR).toISOString()
    const toSwap = (hash: string) => ({
      transactionHash: hash,
      transactionType: 'buy',
      pairAddress: '0xpool',
      blockTimestamp,
    })
    const { source } = open(async () => ({ cursor: null, result: [toSwap('0x1'), bad, toSwap('0x2')] }))
    const rows = await source.fetchNew(toRun({ entities: [toToken(1)], state: createState(), slot: SLOT }).run)
    // The row validation counts the third row as rejected.
    expect(rows.map(({ transaction_hash }) => transaction_hash)).toEqual(expect.arrayContaining(['0x1', '0x2']))
    expect(rows).toHaveLength(3)
  })
})

describe('token with an unreadable stored time', () => {
  it.each(['no number', '{"form":"of another version"}'])('is read like for the first time: %j', async (text) => {
    const from: string[] = []
    const { source } = open(async ({ query }) => {
      from.push(String(query?.fromDate))
      return { cursor: null, result: [] }
    })
    const state = createState()
    const collect = () => source.fetchNew(toRun({ entities: [toToken(1)], state, slot: SLOT }).run)
    await collect()
    const first = from.pop()
    state.set('moralis.token-1', text)
    const repeated = toRun({ entities: [toToken(1)], state, slot: SLOT + HOUR })
    await source.fetchNew(repeated.run)
    expect([repeated.read, Date.parse(from[0] ?? '') - Date.parse(first ?? '')]).toEqual([[1], HOUR])
    // The hour before the slot may still have trades that are not final.
    expect(repeated.readings).toEqual([{ entity: 1, from: Date.parse(from[0] ?? ''), to: SLOT }])
  })
})

describe('block with more swaps than the pages of a slot', () => {
  const at = (ms: number) => new Date(ms).toISOString()
  const swap = (hash: number, ms: number) => ({
    transactionHash: `0x${hash}`,
    transactionType: 'buy',
    blockTimestamp: at(ms),
    pairAddress: '0xpool',
  })
  const first = SLOT - 20 * HOUR
  // Oldest first, two per page: five in one block, two in later blocks.
  const all = [0, 0, 0, 0, 0, 12_000, 24_000].map((after, hash) => swap(hash, first + after))
  const page = async ({ query }: HttpRequest) => {
    const remaining = all.filter(({ blockTimestamp }) => blockTimestamp >= String(query?.fromDate))
    const start = Number(query?.cursor ?? 0)
    return {
      result: remaining.slice(start, start + 2),
      cursor: start + 2 < remaining.length ? String(start + 2) : null,
    }
  }

  it('is read completely, and the next slot continues behind it', async () => {
    // This plan leaves one call per hour for trades.
    const { source } = open(page, '4000')
    const state = createState()
    const requests: string[][] = []
    for (let hour = 0; hour < 4; hour += 1) {
      const testRun = toRun({ entities: [toToken(1)], state, slot: SLOT + hour * HOUR })
      const rows = await source.fetchNew(testRun.run)
      requests.push(rows.map((row) => String(Reflect.get(row, 'transaction_hash'))))
    }
    expect(new Set(requests.flat())).toEqual(new Set(all.map(({ transactionHash }) => transactionHash)))
    expect(requests[1]).toEqual(['0x0', '0x1', '0x2', '0x3', '0x4', '0x5'])
  })
})
