/** Maximum title length in characters, the same as the Snapshot hub's limit. */
const MOST_CHARACTERS = 256
/** Most UTF-16 units of a line that are searched for marks; a title with marks is shorter. */
const MOST_UNITS = 8 * MOST_CHARACTERS

/** Truncates a title. A character has one or two UTF-16 units, so a slice of twice the limit suffices. */
function toCapped(title: string): string {
  const characters = [...title.slice(0, 2 * MOST_CHARACTERS + 1)]
  if (characters.length <= MOST_CHARACTERS) return title
  return `${characters
    .slice(0, MOST_CHARACTERS - 1)
    .join('')
    .trimEnd()}…`
}

const LINE_BREAK = /[\n\r\v\f\u0085\u2028\u2029]/
/** A line break that a program wrote as a backslash and a letter. Before a small letter it may be part of a word, as in `\new`. */
const WRITTEN_BREAK = /(?:\\r)?\\n(?![a-z])|\\r(?=\\n)/g
const ANY_WRITTEN_BREAK = /(?:\\r)?\\n/g
const HTML_BREAK = /<br\s*\/?>|<\/(?:h[1-6]|p|div|li|center)>/gi
const HTML_TAG = /<\/?(?:h[1-6]|p|div|li|span|center|font|a|b|i|u|em|strong|img|br)(?:\s[^<>]*)?\/?>/gi
/** Blanks, zero-width characters, and the marks of headings and quotes. */
const START = /^[\s\u200b\u2060#>]+/
const BLANK = /[\s\u200b\u2060]/
/** A ruler, or the line under a heading. */
const RULER = /^[-=*_~`]{3,}$/
const IMAGE = /^!\[[^\]]*\]\([^)]*\)$/
const ENTITIES: Readonly<Record<string, string>> = {
  ...{ '&amp;': '&', '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'", '&nbsp;': ' ', '&#x20;': ' ' },
}
const ENTITY = /&(?:amp|lt|gt|quot|nbsp|#39|#x20);/g

/**
 * Returns the first line of a description that has a text, without marks of headings, as Markdown, HTML or JSON. Anyone
 * may write a description of any length, so no pattern here scans a text more than once. Otherwise a single line of
 * blanks could block the reading of its chain.
 */
export function toTitle(description: string): string {
  const { text, title } = readJson(description)
  if (title !== undefined) return toLineText(title.replace(/\s+/g, ' '))
  const broken = withBreaks(text).replace(HTML_BREAK, '\n')
  const lines = broken.split(LINE_BREAK)
  if (lines[0]?.trim() === '---') {
    const named = lines.find((line) => /^title:/i.test(line))
    if (named !== undefined) return toLineText(named.slice('title:'.length))
  }
  for (const line of lines) {
    const found = toLineText(line)
    if (found !== '' && !RULER.test(found) && !IMAGE.test(found)) return found
  }
  return ''
}

/** Replaces written line breaks. A text without real ones, but with several written ones, has no others. */
function withBreaks(text: string): string {
  if (!text.includes('\\n')) return text
  const isWritten = !LINE_BREAK.test(text) && text.indexOf('\\n') !== text.lastIndexOf('\\n')
  return text.replace(isWritten ? ANY_WRITTEN_BREAK : WRITTEN_BREAK, '\n')
}

/** Reads a description that is a JSON text or has a title as JSON. Any other description is its own text. */
function readJson(description: string): { readonly text: string; readonly title?: string } {
  const start = /\S/.exec(description)?.[0]
  if (start !== '"' && start !== '{') return { text: description }
  try {
    const value: unknown = JSON.parse(description)
    if (typeof value === 'string') return { text: value }
    const title: unknown = value instanceof Object ? Reflect.get(value, 'title') : undefined
    return typeof title === 'string' ? { text: description, title } : { text: description }
  } catch {
    // Not JSON.
    return { text: description }
  }
}

/** Removes the marks of headings, emphasis, quotes and HTML around a line, and truncates it. */
function toLineText(line: string): string {
  const whole = line.replace(START, '')
  const start = whole.slice(0, MOST_UNITS)
  const plain = start.replace(HTML_TAG, '').replace(ENTITY, (entity) => ENTITIES[entity] ?? entity)
  // Blanks in the middle of a long line may be at the end of its start.
  if (start !== whole) return toCapped(`${trimEnd(plain.replace(START, ''), '')}…`)
  const text = trimEnd(withoutQuote(plain.replace(START, '')).replace(START, ''), '#')
  return toCapped(withoutPair(withoutPair(text, '**'), '__'))
}

/** Removes an opening quote without an end: the text in quotes has several lines. */
const withoutQuote = (text: string) => (text.startsWith('"') && text.indexOf('"', 1) === -1 ? text.slice(1) : text)

/** Removes blanks from the end, and the marks between them. */
function trimEnd(text: string, mark: string): string {
  let end = text.length
  const isBlank = () => BLANK.test(text[end - 1] ?? 'x')
  while (isBlank()) end -= 1
  while (mark !== '' && text[end - 1] === mark) end -= 1
  while (isBlank()) end -= 1
  return text.slice(0, end)
}

/** Removes a mark around the whole text. */
function withoutPair(text: string, mark: string): string {
  const inner = text.slice(mark.length, -mark.length)
  const isAround = text.length > 2 * mark.length && text.startsWith(mark) && text.endsWith(mark)
  return isAround && !inner.includes(mark) ? inner.trim() : text
}
