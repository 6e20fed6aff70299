import { toXml } from './sparkline.ts'

const SIZE = 64
/** Dark enough for white letters (a contrast of at least 4.5). */
const COLOURS = [
  ...['#1d4ed8', '#0369a1', '#0f766e', '#15803d', '#4d7c0f', '#a16207'],
  ...['#c2410c', '#b91c1c', '#be185d', '#a21caf', '#7e22ce', '#4338ca'],
]
const MOST_LETTERS = 4
/** By the number of letters. */
const FONT_SIZES = [0, 30, 26, 20, 16]

/** The first letters of the first two words of a name, or the first two letters of a single word. */
export function toInitials(name: string): string {
  const [first = '', second] = name.match(/[\p{L}\p{N}]+/gu) ?? []
  const initials = second === undefined ? first.slice(0, 2) : `${first.slice(0, 1)}${second.slice(0, 1)}`
  return initials.toUpperCase()
}

/**
 * Draws letters on a circle as a self-contained SVG: no script, no font, no other file. The colour derives from the id.
 */
export function toMark(id: string, name: string, letters: string): string {
  const colour = COLOURS[Number.parseInt(id.slice(0, 8), 16) % COLOURS.length]
  const shown = letters.slice(0, MOST_LETTERS)
  const fontSize = FONT_SIZES[shown.length] ?? 26
  const text = `<text x="${SIZE / 2}" y="${SIZE / 2}" dy="0.36em" text-anchor="middle" font-family="Inter, Helvetica, Arial, sans-serif" font-weight="600" font-size="${fontSize}" fill="#ffffff">${toXml(shown)}</text>`
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${SIZE}" height="${SIZE}" viewBox="0 0 ${SIZE} ${SIZE}" role="img" aria-label="${toXml(name)}"><circle cx="${SIZE / 2}" cy="${SIZE / 2}" r="${SIZE / 2}" fill="${colour}"/>${text}</svg>\n`
}
