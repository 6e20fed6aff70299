/**
 * Seeded noise. Each function is pure, so times can be requested in any order, and two processes with one seed agree.
 */

/** A 32-bit key from a seed and a text (FNV-1a). */
export function toNoiseKey(seed: number, text: string): number {
  let hash = 0x811c9dc5 ^ Math.imul(seed, 0x9e3779b1)
  for (let index = 0; index < text.length; index += 1) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  return scramble(hash)
}

/** A number in [0, 1) from a key and a position. */
export function unit(key: number, position: number): number {
  return scramble(Math.imul(position, 0x9e3779b1) ^ key) / 0x1_0000_0000
}

/** Smooth noise in [-1, 1] with a new random target per unit of `x`. */
export function noise(key: number, x: number): number {
  const cell = Math.floor(x)
  const part = x - cell
  const eased = part * part * (3 - 2 * part)
  const remaining = unit(key, cell)
  return 2 * (remaining + (unit(key, cell + 1) - remaining) * eased) - 1
}

function scramble(value: number): number {
  let hash = value
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}
