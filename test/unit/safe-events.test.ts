import { toEventSelector } from 'viem/utils'
import { describe, expect, it } from 'vitest'
import { decodeTransfers, type TimedLog } from '../../workers/providers/evm/transfer-events.ts'
import { countCases, SEED } from '../support/cases.ts'
import { createRandom } from '../support/random.ts'

const RECEIVED = '0x3d0ce9bfc3ed7d6862dbb28b2dea94561fe714a1b4d019aa8af39730d1ad7c3d'
const SUCCESS = '0x442e715f626346e8c54381002da614f62bee8d27386535b2521ec8540898556e'
const FAILURE = '0x23428b18acfb3ea64b08dc0c1d296ea9c09702c09083ca5272e64d115b687d23'
const EXECUTED = '0x66753cd2356569ee081232e3be8909b950e0a76c1f8460c3a5e3c2be32b11bed'
const MODULE_SUCCESS = '0x6895c13664aa4f67288b25d7a21d7aaa34916e355fb9b6fae0a139a9085becb8'
const EXECUTED_BY_MODULE = '0xb648d3644f584ed1c2232d53c46d87e693586486ad0d1175f8656013110b714e'
const MODULE_FAILURE = toEventSelector('event ExecutionFromModuleFailure(address)')
const TRANSFER = toEventSelector('event Transfer(address,address,uint256)')

const [SAFE, OTHER, PAYEE, RELAYER, TOKEN] = ['a', 'b', 'c', 'd', 'e'].map((digit) => `0x${digit.repeat(40)}`) as [
  string,
  string,
  string,
  string,
  string,
]
const TX = `0x${'1'.repeat(64)}`
const HASH = `${'9'.repeat(64)}`
const ZERO = `0x${'0'.repeat(40)}`
const word = (value: string | number | bigint) =>
  typeof value === 'string' ? value.replace(/^0x/, '').padStart(64, '0') : value.toString(16).padStart(64, '0')
const dataOf = (...words: readonly (string | number | bigint)[]) => `0x${words.map(word).join('')}`

let place = 0
const log = (topics: readonly string[], data: string, more: Partial<TimedLog> = {}): TimedLog => {
  place += 1
  return {
    ...{ address: SAFE, topics: [...topics], data, blockNumber: 5, transactionHash: TX, logIndex: place },
    ...{ blockTimestamp: undefined, removed: false, time: 1_700_000_000, ...more },
  }
}
/** A log in the place after all others. */
const later = (one: TimedLog): TimedLog => log(one.topics, one.data)
const received = (from: string, value: bigint, more: Partial<TimedLog> = {}) =>
  log([RECEIVED, `0x${word(from)}`], dataOf(value), more)

/** The call of a Safe, with its three texts of different lengths. */
const callOf = (to: string, value: bigint, { operation = 0, gasToken = ZERO, refundTo = ZERO } = {}) => [
  ...[to, value, 11 * 32, operation, 0, 0, 0, gasToken, refundTo, 12 * 32, 14 * 32],
  ...[0, 65, 'ab', 'cd', 'ef', 32, '77'],
]
const executed = (...call: Parameters<typeof callOf>) => log([EXECUTED], dataOf(...callOf(...call)))
const success = (payment = 0n) => log([SUCCESS], dataOf(HASH, payment))
const indexedSuccess = (payment = 0n) => log([SUCCESS, `0x${HASH}`], dataOf(payment))

/** The call of a module, with a text of 5 bytes. */
const moduleCallOf = (module: string, to: string, value: bigint, operation = 0) => [
  ...[module, to, value, 5 * 32, operation],
  ...[5, 'abcdef0123'.padEnd(64, '0')],
]
const byModule = (...call: Parameters<typeof moduleCallOf>) =>
  log([EXECUTED_BY_MODULE], dataOf(...moduleCallOf(...call)))
const moduleSuccess = (module: string) => log([MODULE_SUCCESS, `0x${word(module)}`], '0x')

const decode = (logs: readonly TimedLog[]) =>
  decodeTransfers(logs, { chain: 'base', wrapper: undefined, provider: 'node' })
const paymentsOf = (...logs: readonly TimedLog[]) =>
  decode(logs).transfers.map(({ sender, recipient, baseUnits }) => [sender, recipient, baseUnits])

describe('events of a Safe', () => {
  it('are known by their signatures', () => {
    const call = 'address,uint256,bytes,uint8,uint256,uint256,uint256,address,address,bytes,bytes'
    expect(
      [
        'SafeReceived(address,uint256)',
        'ExecutionSuccess(bytes32,uint256)',
        'ExecutionFailure(bytes32,uint256)',
        `SafeMultiSigTransaction(${call})`,
        'ExecutionFromModuleSuccess(address)',
        'SafeModuleTransaction(address,address,uint256,bytes,uint8)',
      ].map((signature) => toEventSelector(`event ${signature}`)),
    ).toEqual([RECEIVED, SUCCESS, FAILURE, EXECUTED, MODULE_SUCCESS, EXECUTED_BY_MODULE])
  })

  it('have the coins that a Safe received', () => {
    const { transfers, actedIn } = decode([received(OTHER, 7n)])
    expect(transfers).toEqual([
      {
        ...{ chain: 'base', blockNumber: 5, time: 1_700_000_000, transactionHash: TX, provider: 'node' },
        ...{ contractAddress: '', sender: OTHER, recipient: SAFE, baseUnits: 7n, symbol: '', decimals: 18 },
      },
    ])
    expect([...actedIn]).toEqual([])
  })

  it.each([
    ['in the data', success],
    ['in a topic', indexedSuccess],
  ])('have the coins that a Safe paid, with the hash %s', (_, toSuccess) => {
    const logs = [executed(PAYEE, 10n ** 30n), toSuccess()]
    expect(paymentsOf(...logs)).toEqual([[SAFE, PAYEE, 10n ** 30n]])
    expect([...(decode(logs).actedIn.get(TX) ?? [])]).toEqual([SAFE])
  })

  it('have no payment of a call that failed, was delegated or moved nothing', () => {
    expect(paymentsOf(executed(PAYEE, 5n), log([FAILURE], dataOf(HASH, 0)))).toEqual([])
    expect(paymentsOf(executed(PAYEE, 5n, { operation: 1 }), success())).toEqual([])
    expect(paymentsOf(executed(PAYEE, 0n), success())).toEqual([])
    expect(paymentsOf(executed(PAYEE, 5n))).toEqual([])
    expect(paymentsOf(success())).toEqual([])
  })

  it('have the refund of gas, also of a failed call, unless it is paid in a token', () => {
    const refund = { refundTo: RELAYER }
    expect(paymentsOf(executed(PAYEE, 5n, refund), success(3n))).toEqual([
      [SAFE, PAYEE, 5n],
      [SAFE, RELAYER, 3n],
    ])
    expect(paymentsOf(executed(PAYEE, 5n, refund), log([FAILURE], dataOf(HASH, 3)))).toEqual([[SAFE, RELAYER, 3n]])
    expect(paymentsOf(executed(PAYEE, 5n, { ...refund, gasToken: TOKEN }), success(3n))).toEqual([[SAFE, PAYEE, 5n]])
  })

  it('have a payment between two Safes once, and two equal payments twice', () => {
    const arrival = received(SAFE, 5n, { address: OTHER })
    expect(paymentsOf(executed(OTHER, 5n), arrival, success())).toEqual([[SAFE, OTHER, 5n]])
    expect(paymentsOf(executed(PAYEE, 5n), success(), executed(PAYEE, 5n), success())).toHaveLength(2)
  })
})

describe('calls of the modules of a Safe', () => {
  it('have the coins that a module paid, and that the Safe acted', () => {
    const logs = [byModule(RELAYER, PAYEE, 10n ** 30n), moduleSuccess(RELAYER)]
    expect(paymentsOf(...logs)).toEqual([[SAFE, PAYEE, 10n ** 30n]])
    expect([...(decode(logs).actedIn.get(TX) ?? [])]).toEqual([SAFE])
  })

  it('have no payment of a call that failed, was delegated, moved nothing or has no result of its module', () => {
    const failure = log([MODULE_FAILURE, `0x${word(RELAYER)}`], '0x')
    expect(paymentsOf(byModule(RELAYER, PAYEE, 5n), later(failure))).toEqual([])
    expect(decode([byModule(RELAYER, PAYEE, 5n), later(failure)]).actedIn.size).toBe(0)
    expect(paymentsOf(byModule(RELAYER, PAYEE, 5n, 1), moduleSuccess(RELAYER))).toEqual([])
    expect(paymentsOf(byModule(RELAYER, PAYEE, 0n), moduleSuccess(RELAYER))).toEqual([])
    expect(paymentsOf(byModule(RELAYER, PAYEE, 5n))).toEqual([])
    expect(paymentsOf(byModule(RELAYER, PAYEE, 5n), moduleSuccess(OTHER))).toEqual([])
  })

  it('have no payment of a plain Safe, which logs only the result, but the Safe acted', () => {
    const { transfers, actedIn } = decode([moduleSuccess(RELAYER)])
    expect([transfers, [...(actedIn.get(TX) ?? [])]]).toEqual([[], [SAFE]])
  })

  it('have each payment once if calls are nested in each other', () => {
    expect(
      paymentsOf(
        executed(RELAYER, 1n),
        byModule(RELAYER, PAYEE, 2n),
        byModule(RELAYER, OTHER, 3n),
        byModule(TOKEN, PAYEE, 4n),
        moduleSuccess(TOKEN),
        log([MODULE_FAILURE, `0x${word(RELAYER)}`], '0x'),
        moduleSuccess(RELAYER),
        success(),
      ),
    ).toEqual([
      [SAFE, RELAYER, 1n],
      [SAFE, PAYEE, 4n],
      [SAFE, PAYEE, 2n],
    ])
  })

  it('have a payment between two Safes once', () => {
    const arrival = received(SAFE, 5n, { address: OTHER })
    expect(paymentsOf(byModule(RELAYER, OTHER, 5n), arrival, moduleSuccess(RELAYER))).toEqual([[SAFE, OTHER, 5n]])
  })

  const whole = dataOf(...moduleCallOf(RELAYER, PAYEE, 5n))
  it.each([
    ['truncated to nothing', [EXECUTED_BY_MODULE], '0x'],
    ['truncated after the operation', [EXECUTED_BY_MODULE], whole.slice(0, 2 + 5 * 64)],
    ['with a topic too many', [EXECUTED_BY_MODULE, `0x${word(PAYEE)}`], whole],
  ])('are no payment if the call is %s', (_, topics, data) => {
    expect(paymentsOf(log(topics, data), moduleSuccess(RELAYER))).toEqual([])
  })

  it.each([
    ['without a module', [MODULE_SUCCESS], '0x'],
    ['with a topic too many', [MODULE_SUCCESS, `0x${word(RELAYER)}`, `0x${word(RELAYER)}`], '0x'],
    ['with data', [MODULE_SUCCESS, `0x${word(RELAYER)}`], dataOf(0)],
  ])('are no success if the result is %s', (_, topics, data) => {
    const { transfers, actedIn } = decode([byModule(RELAYER, PAYEE, 5n), log(topics, data)])
    expect([transfers, actedIn.size]).toEqual([[], 0])
  })
})

describe('malformed events of a Safe', () => {
  const whole = dataOf(...callOf(PAYEE, 5n))
  const HUGE = `0x${'f'.repeat(64)}`

  it.each([
    ['no topic of the sender', log([RECEIVED], dataOf(7))],
    ['a topic too many', log([RECEIVED, `0x${word(OTHER)}`, `0x${word(OTHER)}`], dataOf(7))],
    ['no data', log([RECEIVED, `0x${word(OTHER)}`], '0x')],
    ['half a word', log([RECEIVED, `0x${word(OTHER)}`], `0x${'0'.repeat(32)}`)],
    ['two words', log([RECEIVED, `0x${word(OTHER)}`], dataOf(7, 8))],
  ])('are no income: %s', (_, one) => expect(paymentsOf(one)).toEqual([]))

  it.each([
    ['truncated to nothing', log([EXECUTED], '0x')],
    ['truncated after the value', log([EXECUTED], whole.slice(0, 2 + 2 * 64))],
    ['truncated after the operation', log([EXECUTED], whole.slice(0, 2 + 4 * 64))],
    ['truncated in the last place', log([EXECUTED], whole.slice(0, 2 + 11 * 64 - 2))],
    ['with a topic too many', log([EXECUTED, `0x${word(PAYEE)}`], whole)],
  ])('are no payment: a call %s', (_, one) => {
    expect(paymentsOf(later(one), success(3n))).toEqual([])
    // The call before it was that of another result.
    expect(paymentsOf(executed(PAYEE, 9n, { refundTo: RELAYER }), later(one), success(3n))).toEqual([])
  })

  it.each([
    ['without data', log([SUCCESS], '0x')],
    ['without a payment', log([SUCCESS], dataOf(HASH))],
    ['with a word too many', log([SUCCESS], dataOf(HASH, 0, 0))],
    ['with three topics', log([SUCCESS, `0x${HASH}`, `0x${HASH}`], '0x')],
  ])('are no success: a result %s', (_, result) => {
    const { transfers, actedIn } = decode([executed(PAYEE, 5n, { refundTo: RELAYER }), later(result)])
    expect([transfers, actedIn.size]).toEqual([[], 0])
  })

  it('never follow the places of texts', () => {
    const call = callOf(PAYEE, 5n)
    for (const at of [2, 9, 10]) {
      const words = call.map((value, index) => (index === at ? HUGE : value))
      expect(paymentsOf(log([EXECUTED], dataOf(...words)), success())).toEqual([[SAFE, PAYEE, 5n]])
    }
    // A length of 2^256 - 1 of the first text.
    const words = call.map((value, index) => (index === 11 ? HUGE : value))
    expect(paymentsOf(log([EXECUTED], dataOf(...words)), success())).toEqual([[SAFE, PAYEE, 5n]])
  })

  it('cost no more than their first words, however long the data is', () => {
    // 8 MB in each of 40 logs: reading all of it would make ten million words.
    const toLong = (data: string) => Buffer.from(data + '0'.repeat(16_000_000)).toString('latin1')
    const [call, result] = [toLong(whole), toLong(dataOf(HASH, 0))]
    const logs = Array.from({ length: 20 }, () => [log([EXECUTED], call), log([SUCCESS], result)])
    const before = process.memoryUsage().heapUsed
    expect(decode(logs.flat()).transfers).toEqual([])
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(50_000_000)
  })

  it('give only transfers of the emitting contract, from any bytes', () => {
    const { below, pick, chance } = createRandom(SEED)
    const hex = (digits: number) => Array.from({ length: digits }, () => below(16).toString(16)).join('')
    const rounds = countCases(400)
    for (let round = 0; round < rounds; round += 1) {
      const logs = Array.from({ length: 1 + below(6) }, () => {
        const topics = [
          pick([RECEIVED, SUCCESS, FAILURE, EXECUTED, MODULE_SUCCESS, EXECUTED_BY_MODULE, TRANSFER]),
          ...Array.from({ length: below(4) }, () => `0x${hex(64)}`),
        ]
        const data = chance(0.3) ? whole.slice(0, 2 + 2 * below(whole.length / 2)) : `0x${hex(2 * below(500))}`
        return log(chance(0.05) ? [] : topics, data, { address: pick([SAFE, OTHER]) })
      })
      for (const one of decode(logs).transfers) {
        expect([one.sender, one.recipient].every((party) => /^0x[0-9a-f]{40}$/.test(party))).toBe(true)
        expect(one.baseUnits >= 0n && one.baseUnits < 2n ** 256n).toBe(true)
        if (one.contractAddress === '')
          expect([SAFE, OTHER]).toSatisfy((own) => own.includes(one.sender) || own.includes(one.recipient))
        else expect([SAFE, OTHER]).toContain(one.contractAddress)
      }
    }
  })
})
