/** Rank of a UTF-16 unit among code points: surrogates, which encode the highest ones, come last. */
const toRank = (unit: number) => (unit < 0xd800 ? unit : unit < 0xe000 ? unit + 0x2000 : unit - 0x800)

/** Compares texts by code points, like ClickHouse: negative when `a` comes first. */
function compareTexts(a: string, b: string): number {
  if (a === b) return 0
  const most = Math.min(a.length, b.length)
  let at = 0
  while (at < most && a.charCodeAt(at) === b.charCodeAt(at)) at++
  return at === most ? a.length - b.length : toRank(a.charCodeAt(at)) - toRank(b.charCodeAt(at))
}

/** Number of characters by which a text is ordered: a record's position in a cursor must fit in a URL. */
export const ORDERED_CHARACTERS = 100

/** The ordered part of a text. A character is one or two UTF-16 units, so only twice the number of units is read. */
export const toOrdered = (text: string): string =>
  text.length <= ORDERED_CHARACTERS
    ? text
    : [...text.slice(0, 2 * ORDERED_CHARACTERS)].slice(0, ORDERED_CHARACTERS).join('')

/** Compares two values of one member: negative when `a` comes first. */
export const compareValues = (a: number | string, b: number | string): number =>
  typeof a === 'number' && typeof b === 'number' ? a - b : compareTexts(String(a), String(b))
