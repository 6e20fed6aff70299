const BLANKS = /[ \t\n\r]*/y
const SCALAR =
  /"(?:[^"\\\p{Cc}]|[\x7f-\x9f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/uy
const QUOTE = /(?=")/y

/**
 * Returns line and column, both from 1, of the first invalid character of a JSON text. JSON.parse reports the position
 * only in prose, and not always. Call it for texts that JSON.parse rejected.
 */
export function findJsonFault(source: string): { line: number; column: number } {
  const scanner = createScanner(source)
  if (scanner.value()) scanner.take(BLANKS)
  const before = source.slice(0, scanner.position())
  return { line: before.split('\n').length, column: before.length - before.lastIndexOf('\n') }
}

function createScanner(source: string) {
  let position = 0
  const take = (token: RegExp): boolean => {
    token.lastIndex = position
    if (!token.test(source)) return false
    position = token.lastIndex
    return true
  }
  const mark = (character: string): boolean => {
    take(BLANKS)
    if (source[position] !== character) return false
    position += 1
    return true
  }
  const member = (): boolean => {
    take(BLANKS)
    return take(QUOTE) && take(SCALAR) && mark(':') && value()
  }
  const list = (item: () => boolean, end: string): boolean => {
    if (mark(end)) return true
    do {
      if (!item()) return false
    } while (mark(','))
    return mark(end)
  }
  const value = (): boolean => {
    if (mark('{')) return list(member, '}')
    if (mark('[')) return list(value, ']')
    return take(SCALAR)
  }
  return { take, value, position: () => position }
}
