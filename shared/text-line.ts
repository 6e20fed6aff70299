/** Format characters, such as those that reorder the text around them. Emoji and some scripts need the two joiners. */
const INVISIBLE = /(?![\u200c\u200d])[\p{Cf}\p{Cs}\p{Noncharacter_Code_Point}]/gu
const BLANKS = /[\s\p{Cc}\p{Zl}\p{Zp}]+/gu

/**
 * A text of unknown authors as one line without control and reordering characters. Markup is not changed: the writer of
 * each format escapes it.
 */
export const toLine = (text: string): string => text.replace(INVISIBLE, '').replace(BLANKS, ' ').trim()
