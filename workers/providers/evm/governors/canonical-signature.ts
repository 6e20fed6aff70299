import type { AbiParameter } from 'viem'

/** A function as the text of a proposal names it. */
export interface NamedFunction {
  readonly name: string
  readonly inputs: readonly AbiParameter[]
}

/** Longest text and deepest nesting of tuples and arrays. Solidity's compiler refuses functions far below both. */
const MOST_CHARACTERS = 4096
const MOST_LEVELS = 16

const NAME = /^([A-Za-z_$][\w$]*)\(/
const INTEGER = 'u?int(?:8|16|24|32|40|48|56|64|72|80|88|96|1[0-9][0-9]|2[0-5][0-9])'
const ELEMENTARY = new RegExp(`(?:${INTEGER}|address|bool|string|bytes(?:[12]?[0-9]|3[0-2])?)(?![\\w$])`, 'y')
const DIMENSION = /\[([1-9][0-9]{0,8})?\]/y
const INTEGER_BITS = /^u?int(\d+)$/

/**
 * Parses a signature in its canonical form, like `transfer(address,uint256)`. Only then does its text have the hash that
 * contracts compute from the function. Returns undefined for any other text, such as one with blanks, names of
 * parameters or the short type `uint`.
 */
export function parseCanonical(text: string): NamedFunction | undefined {
  if (text.length > MOST_CHARACTERS) return undefined
  const [start, name] = NAME.exec(text) ?? []
  if (start === undefined || name === undefined) return undefined
  const reader = createTypeReader(text, start.length)
  const inputs = text[start.length] === ')' ? [] : reader.readList(MOST_LEVELS)
  return inputs !== undefined && reader.isLast(')') ? { name, inputs } : undefined
}

function createTypeReader(text: string, start: number) {
  let at = start

  function take(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = at
    const found = pattern.exec(text)
    if (found === null) return undefined
    at = pattern.lastIndex
    return found
  }

  function readElement(levels: number): AbiParameter | undefined {
    if (text[at] !== '(') {
      const type = take(ELEMENTARY)?.[0]
      return type === undefined || !isWidth(type) ? undefined : { type }
    }
    at += 1
    const components = readList(levels - 1)
    if (components === undefined || text[at] !== ')') return undefined
    at += 1
    return { type: 'tuple', components }
  }

  function readType(levels: number): AbiParameter | undefined {
    if (levels === 0) return undefined
    const element = readElement(levels)
    if (element === undefined) return undefined
    let { type } = element
    for (let left = levels - 1; text[at] === '['; left -= 1) {
      const dimension = take(DIMENSION)
      if (dimension === undefined || left === 0) return undefined
      type += dimension[0]
    }
    return { ...element, type }
  }

  /** Reads types up to the bracket that closes their list. */
  function readList(levels: number): AbiParameter[] | undefined {
    const types: AbiParameter[] = []
    for (;;) {
      const type = readType(levels)
      if (type === undefined) return undefined
      types.push(type)
      if (text[at] !== ',') return types
      at += 1
    }
  }

  return { readList, isLast: (end: string) => text.slice(at) === end }
}

/** Returns whether the type has a width of whole bytes, up to 32. */
function isWidth(type: string): boolean {
  if (type === 'bytes0') return false
  const bits = INTEGER_BITS.exec(type)?.[1]
  return bits === undefined || (Number(bits) % 8 === 0 && Number(bits) <= 256)
}
