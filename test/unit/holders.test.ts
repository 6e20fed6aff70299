import { describe, expect, it } from 'vitest'
import type { Dataset } from '../../shared/datasets/define-dataset.ts'
import { type TokenHoldersRow, tokenHolders, tokenHoldersRow } from '../../shared/datasets/holders.ts'
import { OMITTED } from '../../workers/job/define-job.ts'
import { toTokensPerSlot } from '../../workers/providers/contracts/holders.ts'
import { toHoldersRow as fromEthplorer } from '../../workers/providers/ethplorer/holder-rows.ts'
import { sumShares } from '../../workers/providers/holder-values.ts'
import { toHoldersRow as fromMoralis } from '../../workers/providers/moralis/holder-rows.ts'
import { toTurn, toTurnOfRun } from '../../workers/providers/plan.ts'
import { toTokenUnits } from '../../workers/providers/token-units.ts'
import { checkRows } from '../../workers/run/rows.ts'
import { toTestToken } from '../samples.ts'
import { silent } from '../support/silent.ts'

const slot = Date.UTC(2024, 4, 6, 7)
const token = toTestToken(1, {})
const address = (n: number) => `0x${String(n).padStart(40, '0')}`
const holder = (n: number, amount: number, share = 1) => ({ address: address(n), amount, amount_usd: null, share })

describe('toTokenUnits', () => {
  it.each([
    ['350000000000000000000000000', 18, 350000000],
    [3.5e26, 18, 350000000],
    ['3.5e+26', 18, 350000000],
    [1.734031552047184e26, 18, 173403155.2047184],
    ['173403155204718412345678901', 18, 173403155.20471841],
    ['10930056627204137678149589', 18, 10930056.627204137],
    ['1', 18, 1e-18],
    [123456, 4, 12.3456],
    ['0', 18, 0],
    ['12345678', 0, 12345678],
  ])('converts %s with %i decimals without losing a digit', (raw, decimals, full) => {
    expect(toTokenUnits(raw, decimals)).toBe(full)
  })

  it('accepts 77 digits, about the maximum of a contract', () => {
    const raw = '11579208923731619542357098500868790785326998466564056403945758400791312963993'
    expect(toTokenUnits(raw, 18)).toBe(Number(BigInt(raw) / 10n ** 18n))
  })

  it('returns the nearest number to the exact quotient, unlike floating-point division', () => {
    const rounded = Array.from({ length: 2_000 }, (_, n) => String(10n ** 24n + BigInt(n) * 987_654_321_987n))
    const exact = rounded.map((text) => Number(`${text.slice(0, -18)}.${text.slice(-18)}`))
    expect(rounded.map((text) => toTokenUnits(text, 18))).toEqual(exact)
    expect(rounded.map((text) => Number(text) / 1e18)).not.toEqual(exact)
  })

  it.each([[undefined], [null], [''], ['0x10'], ['-5'], ['lots'], [{}]])('returns null for %s', (raw) => {
    expect(toTokenUnits(raw, 18)).toBeNull()
  })
})

describe('sumShares', () => {
  it('adds without floating-point errors', () => {
    expect(sumShares(Array.from({ length: 100 }, () => ({ share: 0.07 })))).toBe(7)
    expect(sumShares([{ share: 17.34 }, { share: 12.61 }, { share: 8.6 }])).toBe(38.55)
  })
})

describe('tokenHoldersRow', () => {
  const good: TokenHoldersRow = {
    token: 1,
    observed_at: '2024-05-06T07:00:00.000Z',
    total_holders: 300,
    top100_share: 3,
    holders: [holder(1, 30), holder(2, 20), holder(3, 20)],
  }
  const mistake = (more: object) => tokenHoldersRow.safeParse({ ...good, ...more }).error?.issues[0]?.path.join('.')

  it('accepts a complete row', () => {
    expect(tokenHoldersRow.parse(good)).toEqual(good)
  })

  it.each([
    ['an empty list', { holders: [] }, 'holders'],
    ['more than a hundred holders', { holders: Array.from({ length: 101 }, (_, n) => holder(n, 1)) }, 'holders'],
    ['an unsorted list', { holders: [holder(1, 20), holder(2, 30)] }, 'holders'],
    ['a duplicate address', { holders: [holder(1, 30), holder(1, 20)] }, 'holders'],
    ['a share over 100 %', { holders: [holder(1, 30, 101)] }, 'holders.0.share'],
    ['a negative share', { holders: [holder(1, 30, -0.1)] }, 'holders.0.share'],
    ['an unknown amount', { holders: [{ ...holder(1, 30), amount: null }] }, 'holders.0.amount'],
    ['a mixed-case address', { holders: [{ ...holder(1, 30), address: `0xA${'0'.repeat(39)}` }] }, 'holders.0.address'],
    ['a sum of shares over 100 %', { top100_share: 101 }, 'top100_share'],
    ['an unknown number of holders', { total_holders: null }, 'total_holders'],
    ['a fractional number of holders', { total_holders: 1000.5 }, 'total_holders'],
    ['fewer holders than listed', { total_holders: 2 }, 'total_holders'],
  ])('rejects %s', (_, more, path) => {
    expect(mistake(more)).toBe(path)
  })
})

describe('fromMoralis', () => {
  const owner = {
    owner_address: '0x6cC5F688a315f3dC28A7781717a9A798a59fDA7b',
    balance: '10930056627204137678149589',
    balance_formatted: '10930056.627204137678149589',
    usd_value: '116329685.478903487324714661',
    percentage_relative_to_total_supply: 1.0930056627204137,
  }

  it('returns amounts from the formatted balance and shares as sent', () => {
    const row = fromMoralis({ totalHolders: '99999' }, [owner], token, slot)
    expect(tokenHoldersRow.parse(row)).toEqual({
      token: 1,
      observed_at: '2024-05-06T07:00:00.000Z',
      total_holders: 99999,
      top100_share: 1.0930056627,
      holders: [
        {
          address: '0x6cc5f688a315f3dc28a7781717a9a798a59fda7b',
          amount: 10930056.627204137,
          amount_usd: 116329685.47890349,
          share: 1.0930056627204137,
        },
      ],
    })
  })

  it('falls back to base units, and returns null for an unknown value', () => {
    const { balance_formatted: _, ...raw } = { ...owner, usd_value: null }
    const row = fromMoralis({ totalHolders: 5 }, [raw], token, slot)
    expect(row.holders).toMatchObject([{ amount: 10930056.627204137, amount_usd: null }])
  })

  it.each([
    ['balance', { balance: 'n/a', balance_formatted: null }, 'holders.*.amount'],
    ['share', { percentage_relative_to_total_supply: null }, 'holders.*.share'],
    ['address', { owner_address: null }, 'holders.*.address'],
  ])('is rejected with an unreadable %s of one holder, which is not zero', (_, more, member) => {
    const owners = Array.from({ length: 5 }, (_, n) => ({ ...owner, owner_address: address(n), ...(n === 1 && more) }))
    const row = fromMoralis({ totalHolders: 500 }, owners, token, slot)
    const { rows, refused } = checkRows(tokenHolders as unknown as Dataset, 'moralis', [row], {
      now: slot,
      log: silent,
    })
    expect(rows).toEqual([])
    const message = expect.stringMatching(`^moralis: ${member.replaceAll('*', '\\*')}: `)
    expect(refused.get(token.key)).toMatchObject({ code: 'provider_malformed', message })
  })

  it('leaves out an unreadable holder after the hundred largest', () => {
    const owners = Array.from({ length: 130 }, (_, n) => ({
      ...owner,
      ...{ owner_address: n === 120 ? null : address(n), percentage_relative_to_total_supply: 0.5 },
    }))
    const row = fromMoralis({ totalHolders: 500 }, owners, token, slot)
    expect(tokenHoldersRow.parse(row).holders).toHaveLength(100)
    expect(row[OMITTED]).toEqual([expect.stringMatching(/^holders\.\*\.address: /)])
  })

  it('keeps the first hundred holders', () => {
    const owners = Array.from({ length: 130 }, (_, n) => ({ ...owner, owner_address: address(n) }))
    expect(fromMoralis({ totalHolders: 500 }, owners, token, slot).holders).toHaveLength(100)
  })
})

describe('fromEthplorer', () => {
  const list = {
    holders: [{ address: address(1), balance: 3.5e26, rawBalance: '350000000000000000000000000', share: 35 }],
  }
  const info = { holdersCount: '12', price: { rate: '2.5', currency: 'USD' } }

  it('returns values at the price of the response', () => {
    const holders = [{ address: address(1), amount: 350000000, amount_usd: 875000000, share: 35 }]
    const row = tokenHoldersRow.parse(fromEthplorer(list, info, token, slot))
    expect(row).toMatchObject({ total_holders: 12, top100_share: 35, holders })
  })

  it('uses the float if the exact balance is missing, and parses shares sent as texts', () => {
    const old = { holders: [{ address: address(1), balance: 1.25e24, share: '0.13' }] }
    const { holders } = tokenHoldersRow.parse(fromEthplorer(old, info, token, slot))
    expect(holders).toMatchObject([{ amount: 1250000, share: 0.13 }])
  })

  it.each([[false], [null], [undefined], [{ rate: 0 }], [{ rate: 2, currency: 'EUR' }]] as const)(
    'returns null values for the price %j',
    (price) => {
      const { holders } = tokenHoldersRow.parse(fromEthplorer(list, { holdersCount: 12, price }, token, slot))
      expect(holders[0]?.amount_usd).toBeNull()
    },
  )
})

describe('rotation of tokens', () => {
  const tokens = Array.from({ length: 92 }, (_, n) => n)
  const hour = 3_600_000

  it('toTurn() returns at most the quota, and every token once per round', () => {
    const turns = Array.from({ length: 12 }, (_, n) => toTurn(tokens, 8, slot + n * hour, '1h'))
    expect(Math.max(...turns.map((turn) => turn.length))).toBeLessThanOrEqual(8)
    expect(turns.flat().sort((a, b) => a - b)).toEqual(tokens)
  })

  it('toTurn() depends only on the slot', () => {
    expect(toTurn(tokens, 8, slot, '1h')).toEqual(toTurn(tokens, 8, slot, '1h'))
    expect(toTurn(tokens, 8, slot, '1h')).toEqual(toTurn(tokens, 8, slot + 12 * hour, '1h'))
  })

  it('toTurn() returns all tokens if the quota allows it, and none without tokens', () => {
    expect(toTurn(tokens, 92, slot, '1h')).toEqual(tokens)
    expect(toTurn([], 8, slot, '1h')).toEqual([])
  })

  const everybody = Array.from({ length: 92 }, (_, key) => toTestToken(key, {}))
  const BATCHES = 8
  /** Returns a run per chunk, in which another provider has some of the results. */
  const toBatches = (at: number, isPassedOn: (key: number) => boolean = () => true) =>
    Array.from({ length: BATCHES }, (_, index) => {
      const own = everybody.filter(({ key }) => key % BATCHES === index)
      const entities = own.filter(({ key }) => isPassedOn(key))
      return { entities, peers: { all: everybody, own }, passedOn: entities, slot: at }
    })
  const keysOf = (batches: ReturnType<typeof toBatches>) =>
    batches.flatMap((batch) => toTurnOfRun(batch, 8, '1h').map(({ key }) => key)).sort((a, b) => a - b)

  it('toTurnOfRun() returns for all chunks the tokens of the whole slot', () => {
    for (let n = 0; n < 24; n += 1) {
      const at = slot + n * hour
      expect(keysOf(toBatches(at))).toEqual(toTurn(tokens, 8, at, '1h'))
    }
  })

  it('toTurnOfRun() adds no other tokens when a slot is retried', () => {
    const due = toTurn(tokens, 8, slot, '1h')
    const repeat = toBatches(slot, (key) => !due.includes(key)).map((batch) => ({ ...batch, passedOn: [] }))
    expect(keysOf(repeat)).toEqual([])
  })

  it('toTurnOfRun() uses free places for tokens unknown to another provider, and reaches each of them', () => {
    const unknown = (key: number) => key % 5 === 0
    const requestedKeys = new Set<number>()
    for (let n = 0; n < 24 * 14; n += 1) {
      const keys = keysOf(toBatches(slot + n * hour, unknown))
      expect(keys.length).toBeLessThanOrEqual(8)
      for (const key of keys) requestedKeys.add(key)
    }
    expect([...requestedKeys].sort((a, b) => a - b)).toEqual(tokens.filter(unknown))
  })

  it('toTokensPerSlot() stays below the weekly limit of the free key and the time limit of a job', () => {
    expect(toTokensPerSlot(20, 16) * 2 * 24 * 7).toBeLessThan(3_000)
    expect(toTokensPerSlot(300)).toBeGreaterThan(107)
    expect(toTokensPerSlot(1, 1)).toBe(1)
  })
})
