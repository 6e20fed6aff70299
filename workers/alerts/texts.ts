const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' })

/**
 * Cuts a text between graphemes, so that at most `most` UTF-16 code units remain after `toEscaped`. The result
 * is not escaped. `toEscaped` must treat each grapheme alike wherever it is.
 */
export function cutText(text: string, most: number, toEscaped: (text: string) => string = (one) => one): string {
  if (text.length <= most && toEscaped(text).length <= most) return text
  let length = '…'.length
  let end = 0
  // Text beyond this cannot fit, and segmenting a long text is slow.
  for (const { segment } of graphemes.segment(text.slice(0, 2 * most))) {
    length += toEscaped(segment).length
    if (length > most) break
    end += segment.length
  }
  return `${text.slice(0, end).trimEnd()}…`
}

/** For HTML, XML and Slack. */
export const escapeMarkup = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

/** Discord's Markdown. The escaped slash ends the detection of URLs. */
export const escapeDiscord = (text: string): string => text.replaceAll(/[\\`*_~|<>[\]()#@/+-]/g, '\\$&')

/** Text that Telegram turns into a link, also without markup: addresses, domains, mentions, commands and tags. */
const LINKED = /:\/\/|[\p{L}\p{N}][.@][\p{L}]|(?:^|[\s\p{P}])[@#/][\p{L}\p{N}]/u

/** Telegram's HTML. A text that Telegram would make links in is shown as code, where it does not. */
export function toTelegramHtml(text: string, tag?: 'b'): string {
  const escaped = escapeMarkup(text)
  const name = LINKED.test(text) ? 'code' : tag
  return name === undefined ? escaped : `<${name}>${escaped}</${name}>`
}
