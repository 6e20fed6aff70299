import type { AbiParameter } from 'viem'

/** Most bytes of decoded text for each byte of calldata. Canonical calldata has at most 6, in a string of control characters. */
const MOST_BYTES_PER_BYTE = 8
const WORD = 32
const ARRAY = /^(.*)\[(\d*)\]$/
const INTEGER = /^(u?)int(\d+)$/
const FIXED_BYTES = /^bytes(\d+)$/

/** The data does not fit its types, or its text would be too long. */
class UndecodableError extends Error {}

interface Input {
  readonly bytes: Buffer
  /** Counts this number of bytes of decoded text. @throws UndecodableError if there are too many. */
  spend(bytes: number): void
}

/**
 * Decodes the arguments of a call as texts. Numbers keep all digits, addresses are in lower case, and lists are JSON.
 * Pointers in calldata may refer to the same bytes many times, and lengths may be any number. So the length of the text
 * is counted before it is made, and is at most MOST_BYTES_PER_BYTE times the calldata. Returns undefined if the calldata
 * does not fit the types, or its text would be longer.
 */
export function toArgumentTexts(inputs: readonly AbiParameter[], calldata: Buffer): string[] | undefined {
  let left = MOST_BYTES_PER_BYTE * calldata.length
  const spend = (bytes: number) => {
    left -= bytes
    if (left < 0) throw new UndecodableError('the text is too long')
  }
  try {
    return readMembers({ bytes: calldata.subarray(SELECTOR_BYTES), spend }, inputs, 0, false)
  } catch (error) {
    if (error instanceof UndecodableError) return undefined
    throw error
  }
}

const SELECTOR_BYTES = 4

/** Returns the number of bytes of a static type, or undefined for a dynamic one, which has a pointer instead. */
function findStaticSize(input: AbiParameter): number | undefined {
  const [, element, count] = ARRAY.exec(input.type) ?? []
  if (element !== undefined) {
    const size = findStaticSize({ ...input, type: element })
    return size === undefined || count === '' ? undefined : size * Number(count)
  }
  if (input.type === 'string' || input.type === 'bytes') return undefined
  if (!('components' in input)) return WORD
  let size = 0
  for (const component of input.components) {
    const own = findStaticSize(component)
    if (own === undefined) return undefined
    size += own
  }
  return size
}

/** Reads values whose heads follow each other at `start`. Pointers of dynamic values count from there. */
function readMembers(input: Input, members: readonly AbiParameter[], start: number, isNested: boolean): string[] {
  let head = start
  return members.map((member) => {
    const size = findStaticSize(member)
    const at = size === undefined ? start + readLength(input, head) : head
    head += size ?? WORD
    return readValue(input, member, at, isNested)
  })
}

function readValue(input: Input, member: AbiParameter, at: number, isNested: boolean): string {
  const [, element, count] = ARRAY.exec(member.type) ?? []
  if (element !== undefined) return readArray(input, { ...member, type: element }, count ?? '', at)
  if ('components' in member) {
    input.spend(LIST_BYTES)
    return `[${readMembers(input, member.components, at, true).join(',')}]`
  }
  if (member.type === 'string' || member.type === 'bytes') return readBytes(input, member.type, at, isNested)
  const text = readWord(input, member.type, at)
  const shown = isNested && member.type !== 'bool' ? `"${text}"` : text
  input.spend(shown.length + (isNested ? 1 : 0))
  return shown
}

/** Brackets and a comma. */
const LIST_BYTES = 3

function readArray(input: Input, element: AbiParameter, count: string, at: number): string {
  const length = count === '' ? readLength(input, at) : Number(count)
  const start = count === '' ? at + WORD : at
  const size = findStaticSize(element)
  if (length * (size ?? WORD) > input.bytes.length - start) throw new UndecodableError('a list is cut')
  input.spend(LIST_BYTES)
  const texts: string[] = []
  for (let index = 0; index < length; index += 1) {
    const head = start + index * (size ?? WORD)
    texts.push(readValue(input, element, size === undefined ? start + readLength(input, head) : head, true))
  }
  return `[${texts.join(',')}]`
}

function readBytes(input: Input, type: string, at: number, isNested: boolean): string {
  const length = readLength(input, at)
  const start = at + WORD
  if (length > input.bytes.length - start) throw new UndecodableError('bytes are cut')
  // A text is made only if it fits in the smallest form that it can have: one byte for each of its bytes.
  input.spend(type === 'bytes' ? 2 * length + LIST_BYTES : length)
  const bytes = input.bytes.subarray(start, start + length)
  if (type === 'bytes') return isNested ? `"0x${bytes.toString('hex')}"` : `0x${bytes.toString('hex')}`
  const text = bytes.toString('utf8')
  const shown = isNested ? JSON.stringify(text) : text
  input.spend(Math.max(0, Buffer.byteLength(shown) - length) + (isNested ? 1 : 0))
  return shown
}

/** Reads a pointer or a length. No number above the size of the data can be one. */
function readLength(input: Input, at: number): number {
  const word = BigInt(`0x${readHex(input, at)}`)
  if (word > BigInt(input.bytes.length)) throw new UndecodableError('a pointer or a length exceeds the data')
  return Number(word)
}

/**
 * Reads a value of one word. Bits outside its type make the call undecodable: a contract refuses them or ignores them,
 * depending on its compiler.
 */
function readWord(input: Input, type: string, at: number): string {
  const hex = readHex(input, at)
  const value = BigInt(`0x${hex}`)
  if (type === 'address') return `0x${requireFit(value < 1n << 160n, hex).slice(24)}`
  if (type === 'bool') return requireFit(value < 2n, hex).endsWith('1') ? 'true' : 'false'
  const [, unsigned, bits] = INTEGER.exec(type) ?? []
  if (bits !== undefined) {
    const number = unsigned === 'u' ? value : BigInt.asIntN(256, value)
    const narrowed = unsigned === 'u' ? BigInt.asUintN(Number(bits), value) : BigInt.asIntN(Number(bits), value)
    requireFit(number === narrowed, hex)
    return String(number)
  }
  const size = Number(FIXED_BYTES.exec(type)?.[1])
  return `0x${requireFit(/^0*$/.test(hex.slice(2 * size)), hex).slice(0, 2 * size)}`
}

function requireFit(fits: boolean, hex: string): string {
  if (!fits) throw new UndecodableError('a value exceeds its type')
  return hex
}

function readHex({ bytes }: Input, at: number): string {
  if (at + WORD > bytes.length) throw new UndecodableError('the data is cut')
  return bytes.toString('hex', at, at + WORD)
}
