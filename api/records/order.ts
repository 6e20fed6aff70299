/** Where a UTF-16 unit stands among code points: surrogates, which stand for the highest ones, come last. */
const toRank = (unit: number) => (unit < 0xd800 ? unit : unit < 0xe000 ? unit + 0x2000 : unit - 0x800)

/** Texts by code points, which is how ClickHouse orders them: negative when `a` comes first. */
function compareTexts(a: string, b: string): number {
  if (a === b) return 0
  const most = Math.min(a.length, b.length)
  let at = 0
  while (at < most && a.charCodeAt(at) === b.charCodeAt(at)) at++
  return at === most ? a.length - b.length : toRank(a.charCodeAt(at)) - toRank(b.charCodeAt(at))
}

/** A text is ordered by so many characters: the place of a record, which a cursor holds, has to fit in a URL. */
export const ORDERED_CHARACTERS = 100

/** The part of a text that orders it. A character is one or two units of a text, so that no more of it is looked at. */
export const toOrdered = (text: string): string =>
  text.length <= ORDERED_CHARACTERS
    ? text
    : [...text.slice(0, 2 * ORDERED_CHARACTERS)].slice(0, ORDERED_CHARACTERS).join('')

/** Two values of one member: negative when `a` comes first. */
export const compareValues = (a: number | string, b: number | string): number =>
  typeof a === 'number' && typeof b === 'number' ? a - b : compareTexts(String(a), String(b))
