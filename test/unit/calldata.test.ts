import { encodeAbiParameters, encodeFunctionData, keccak256, parseAbi, toBytes, toFunctionSelector } from 'viem/utils'
import { describe, expect, it } from 'vitest'
import { decodeAction } from '../../workers/providers/evm/governors/calldata.ts'

const TARGET = `0x${'c'.repeat(40)}`
const TO = '0x5069a64bc6616dec1584ee0500b7813a9b680f7e'
const decode = (signature: string, calldata: string) => decodeAction({ target: TARGET, value: 5n, signature, calldata })
const encode = (declaration: string, functionName: string, args: readonly unknown[]) =>
  encodeFunctionData({ abi: parseAbi([declaration] as readonly string[]), functionName, args } as Parameters<
    typeof encodeFunctionData
  >[0])

const TUPLES = { type: 'tuple[]', components: [{ type: 'bool' }, { type: 'string' }] }

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

  it('takes no selector from the data if the proposal has a signature', () => {
    const data = `0x${transfer.slice(10)}`
    for (const [signature, selector] of [
      ['transfer(address,uint)', '0x6cb927d8'],
      ['transfer(address, uint256)', '0x9d61d234'],
    ] as const)
      expect(decode(signature, data)).toMatchObject({
        ...{ function: null, signature, arguments: [], calldata: `${selector}${data.slice(2)}` },
      })
    const call = decode('x y()', transfer)
    expect(call).toMatchObject({ function: null, signature: 'x y()', arguments: [] })
    expect(call.calldata).toBe(`${toFunctionSelector('x y()')}${transfer.slice(2)}`)
  })

  it('does not decode a signature with the selector of another well-known function', () => {
    // The best known collision: its selector is that of transfer(address,uint256).
    expect(decode('many_msg_babbage(bytes1)', `0x${transfer.slice(10)}`)).toMatchObject({
      ...{ function: null, signature: 'many_msg_babbage(bytes1)', arguments: [], calldata: transfer },
    })
  })

  it('shows the selector of the bytes of a signature that is no UTF-8', () => {
    const signatureBytes = '0xff2829'
    const action = { target: TARGET, value: 0n, signature: '\ufffd()', signatureBytes, calldata: '0xab' } as const
    const selector = keccak256(signatureBytes).slice(0, 10)
    expect(decodeAction(action)).toMatchObject({ function: null, signature: '\ufffd()', calldata: `${selector}ab` })
  })

  it.each([
    'transfer(address to,uint256)',
    'transfer(address,uint256) ',
    ' transfer(address,uint256)',
    'transfer(address,uint256);',
    'transfer(address,uint256)()',
    'function transfer(address,uint256)',
    'transfer(address payable,uint256)',
    'transfer(address,uint256[01])',
    'transfer(address,uint7)',
    'transfer(address,uint264)',
    'transfer(address,bytes33)',
    'transfer(address,bytes0)',
    'transfer(address,())',
    'transfer(address,uint256[0])',
    'transfer(address,tuple(uint256))',
    'transfer(address,,uint256)',
    'transfer(address,uint256,)',
    'transfer',
    'transfer(address,uint256',
    '(address,uint256)',
    '\ufefftransfer(address,uint256)',
    'transfer(address,\u0000uint256)',
    `f(${'('.repeat(100_000)}uint256${')'.repeat(100_000)})`,
    `f(uint256${'[1]'.repeat(100)})`,
    `f(${'('.repeat(17)}uint256${')'.repeat(17)})`,
  ])('keeps a signature that is not canonical as written: %s', (signature) => {
    const data = `0x${transfer.slice(10)}`
    expect(decode(signature, data)).toMatchObject({ function: null, signature, arguments: [] })
    expect(decode(signature, data).calldata).toBe(`${keccak256(toBytes(signature)).slice(0, 10)}${data.slice(2)}`)
  })

  it.each([
    ['an address with other bits', 'transfer(address,uint256)', `${'1'.repeat(64)}${'0'.repeat(64)}`],
    ['a boolean that is 2', 'f(bool)', '2'.padStart(64, '0')],
    ['a number above its type', 'f(uint8)', '100'.padStart(64, '0')],
    ['a negative number below its type', 'f(int8)', `${'f'.repeat(61)}f7f`],
    ['bytes with other bytes', 'f(bytes4)', '1'.repeat(64)],
  ])('does not decode %s', (_, signature, data) => {
    expect(decode(signature, `0x${data}`)).toMatchObject({ function: null, signature })
  })

  it('decodes values of every type like the library', () => {
    const types =
      'int8,uint8,int256,bool,bytes4,bytes32,address,string,bytes,string[],bytes[2],uint16[2][],(bool,string)[]'
    const values = [
      ...[-128, 255, -(2n ** 255n), true, '0x01020304', `0x${'9'.repeat(64)}`, TO, 'a\n"é', '0x0102'],
      ...[['\u0000', '"'], ['0x', '0x01'], [[1, 2]], [[false, TO.toUpperCase().replace('0X', '0x')]]],
    ]
    const inputs = types.split(/,(?![^(]*\))/).map((type) => (type.startsWith('(') ? TUPLES : { type }))
    const data = encodeAbiParameters(inputs, values as never)
    const call = decode(`f(${types})`, data)
    expect(call.arguments.map(({ value }) => value)).toEqual([
      ...['-128', '255', String(-(2n ** 255n)), 'true', '0x01020304', `0x${'9'.repeat(64)}`, TO, 'a\n"é', '0x0102'],
      ...['["\\u0000","\\""]', '["0x","0x01"]', '[["1","2"]]', `[[false,"0x${TO.slice(2).toUpperCase()}"]]`],
    ])
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
    expect(decode(signature, calldata)).toMatchObject({
      ...{ function: null, signature: signature === '' ? null : signature, arguments: [] },
    })
    expect(decode(signature, calldata).calldata.endsWith(calldata.slice(2))).toBe(true)
  })

  const word = (value: number | bigint) => value.toString(16).padStart(64, '0')
  const textLength = (call: { arguments: { value: string }[] }) =>
    call.arguments.reduce((sum, { value }) => sum + Buffer.byteLength(value), 0)

  it('does not decode calldata with many pointers to the same bytes', () => {
    const [pointers, size] = [1500, 48_000]
    const list = [word(pointers), word(pointers * 32).repeat(pointers), word(size), 'ab'.repeat(size)].join('')
    const started = process.memoryUsage().heapUsed
    const call = decode('', `0xac9650d8${word(32)}${list}`)
    expect(call).toMatchObject({ function: null, signature: null, arguments: [] })
    expect(process.memoryUsage().heapUsed - started).toBeLessThan(20_000_000)
  })

  it.each([
    ['a length above the data', 'f(uint256[])', word(32) + word(2n ** 255n)],
    ['a fixed array longer than the data', 'f(uint256[999999999][999999999])', word(1)],
    ['lists of lists that share all bytes', 'f(uint256[][][][][][])', word(32).repeat(80)],
    ['a pointer behind the data', 'f(bytes)', word(2n ** 256n - 1n)],
    ['bytes longer than the data', 'f(bytes)', word(32) + word(33) + word(0)],
  ])('does not decode %s', (_, signature, data) => {
    expect(decode(signature, `0x${data}`)).toMatchObject({ function: null, signature, arguments: [] })
  })

  it.each([
    ['control characters', 'f(string[])', ['string[]', ['\u0001'.repeat(10_000)]]],
    ['large numbers', 'f(uint256[])', ['uint256[]', Array(1000).fill(2n ** 256n - 1n)]],
    ['empty bytes', 'f(bytes[])', ['bytes[]', Array(1000).fill('0x')]],
  ] as const)('decodes %s, in at most eight times the length of the calldata', (_, signature, [type, value]) => {
    const call = decode(signature, encodeAbiParameters([{ type }], [value]))
    expect(call.function).toBe('f')
    expect(textLength(call)).toBeLessThanOrEqual(8 * (call.calldata.length / 2 - 1))
  })
})
