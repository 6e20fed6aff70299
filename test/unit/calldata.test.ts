import { encodeFunctionData, parseAbi } from 'viem/utils'
import { describe, expect, it } from 'vitest'
import { decodeAction } from '../../workers/providers/evm/governors/calldata.ts'

const TARGET = `0x${'c'.repeat(40)}`
const TO = '0x5069a64bc6616dec1584ee0500b7813a9b680f7e'
const decode = (signature: string, calldata: string) => decodeAction({ target: TARGET, value: 5n, signature, calldata })
const encode = (declaration: string, functionName: string, args: readonly unknown[]) =>
  encodeFunctionData({ abi: parseAbi([declaration] as readonly string[]), functionName, args } as Parameters<
    typeof encodeFunctionData
  >[0])

describe('decodeAction', () => {
  const transfer = encode('function transfer(address to, uint256 amount)', 'transfer', [TO, 2n ** 200n])
  const decoded = {
    ...{
      target: TARGET,
      value_wei: '5',
      function: 'transfer',
      signature: 'transfer(address,uint256)',
      calldata: transfer,
    },
    arguments: [
      { name: 'to', type: 'address', value: TO },
      { name: 'amount', type: 'uint256', value: String(2n ** 200n) },
    ],
  }

  it('decodes a well-known function by its selector', () => {
    expect(decode('', transfer)).toEqual(decoded)
  })

  it('decodes a call by the signature in the proposal', () => {
    expect(decode('transfer(address,uint256)', `0x${transfer.slice(10)}`)).toEqual(decoded)
    const own = encode('function setCaps(uint256[] a, (address,bool) b)', 'setCaps', [
      [1n, 2n],
      [TO, true],
    ])
    expect(decode('setCaps(uint256[],(address,bool))', `0x${own.slice(10)}`)).toMatchObject({
      ...{ function: 'setCaps', signature: 'setCaps(uint256[],(address,bool))', calldata: own },
      arguments: [
        { name: null, type: 'uint256[]', value: '["1","2"]' },
        { name: null, value: expect.stringContaining(TO) },
      ],
    })
  })

  it.each([
    ['an unknown selector', '', '0xdeadbeef'],
    ['no calldata', '', '0x'],
    ['calldata shorter than a selector', '', '0xa905'],
    ['truncated arguments', '', transfer.slice(0, 80)],
    ['a text that is no signature', 'pay everyone!', '0x'],
    ['a signature with an unknown type', 'pay(money)', `0x${'0'.repeat(64)}`],
    ['an unclosed signature', 'pay((address)', `0x${'0'.repeat(64)}`],
  ])('keeps %s as hexadecimal digits', (_, signature, calldata) => {
    expect(decode(signature, calldata)).toMatchObject({ function: null, signature: null, arguments: [] })
    expect(decode(signature, calldata).calldata.endsWith(calldata.slice(2))).toBe(true)
  })
})
