/** Random numbers from 0 to 1, deterministic for a seed (mulberry32), and random choices. */
export function createRandom(seed: number) {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (count: number) => Math.floor(next() * count)
  const pick = <T>(values: readonly T[]): T => values[below(values.length)] as T
  return { next, below, pick, chance: (share: number) => next() < share }
}
