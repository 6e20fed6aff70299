import { setImmediate } from 'node:timers/promises'

/** Voters with the same choices, from the ids of the proposals that they voted on. */
export interface Vector {
  /** A code of the choice for each proposal of the window; 0 if they did not vote. Null if it is not compared with others. */
  readonly choices: Uint32Array | null
  readonly power: number
  readonly voters: number
}

/** Vectors that vote alike, by their indexes. */
export interface Bloc {
  readonly vectors: readonly number[]
  readonly power: number
  readonly voters: number
}

/** Two voters are linked if their choices differ on at most this share of the proposals. */
const MOST_DIFFERENT = 0.34

/** How long other requests may wait for the comparison of vectors, in milliseconds. */
const TURN_MS = 20

function createSets(size: number) {
  const parents = Int32Array.from({ length: size }, (_, at) => at)
  const rootOf = (at: number): number => {
    let root = at
    while (parents[root] !== root) root = parents[root] as number
    while (parents[at] !== root) [parents[at], at] = [root, parents[at] as number]
    return root
  }
  const join = (one: number, other: number) => {
    parents[rootOf(one)] = rootOf(other)
  }
  return { rootOf, join }
}

/**
 * The choices of all vectors as bits, to compare 32 proposals at once: a vector has `planes` runs of `words` words, and the bit
 * of a proposal in plane n is bit n of its choice. Choices are numbered for each proposal, because few planes are fast.
 */
function packChoices(vectors: readonly Vector[], proposals: number) {
  const words = Math.ceil(proposals / 32)
  const numbers = Array.from({ length: proposals }, () => new Map([[0, 0]]))
  const numbered = vectors.map(({ choices }) =>
    choices?.map((choice, at) => {
      const own = numbers[at] as Map<number, number>
      const number = own.get(choice) ?? own.size
      own.set(choice, number)
      return number
    }),
  )
  const most = numbers.reduce((largest, { size }) => Math.max(largest, size - 1), 0)
  const planes = 32 - Math.clz32(most)
  const bits = new Int32Array(vectors.length * planes * words)
  for (const [vector, choices] of numbered.entries())
    for (const [at, number] of choices?.entries() ?? [])
      for (let plane = 0; plane < planes; plane += 1)
        if ((number >>> plane) & 1) {
          const place = (vector * planes + plane) * words + (at >>> 5)
          bits[place] = (bits[place] as number) | (1 << (at & 31))
        }
  return { bits, planes, words }
}

function countBits(word: number): number {
  const pairs = word - ((word >>> 1) & 0x55555555)
  const fours = (pairs & 0x33333333) + ((pairs >>> 2) & 0x33333333)
  return Math.imul((fours + (fours >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24
}

/** Whether two packed vectors differ on at most `most` proposals. */
function areAlike(packed: ReturnType<typeof packChoices>, one: number, other: number, most: number): boolean {
  const { bits, planes, words } = packed
  const [first, second] = [one * planes * words, other * planes * words]
  let different = 0
  for (let word = 0; word < words; word += 1) {
    let differing = 0
    for (let at = word; at < planes * words; at += words)
      differing |= (bits[first + at] as number) ^ (bits[second + at] as number)
    different += countBits(differing)
    if (different > most) return false
  }
  return true
}

/**
 * Groups voters into blocs by single linkage: two voters are in one bloc if a chain of voters links them. The result depends
 * neither on the order of the voters nor on how many of them cast the same votes. Largest power first.
 * @throws the reason of the signal.
 */
export async function findBlocs(vectors: readonly Vector[], proposals: number, signal: AbortSignal): Promise<Bloc[]> {
  // The product of a share and a number may be a little below a whole number.
  const most = Math.floor(MOST_DIFFERENT * proposals + 1e-9)
  const { rootOf, join } = createSets(vectors.length)
  const packed = packChoices(vectors, proposals)
  let began = performance.now()
  for (const [at, { choices }] of vectors.entries()) {
    if (choices === null) continue
    if (performance.now() - began > TURN_MS) {
      await setImmediate()
      signal.throwIfAborted()
      began = performance.now()
    }
    for (let next = at + 1; next < vectors.length; next += 1) {
      const isCompared = vectors[next]?.choices !== null
      if (isCompared && rootOf(at) !== rootOf(next) && areAlike(packed, at, next, most)) join(at, next)
    }
  }
  const blocs = new Map<number, number[]>()
  for (const at of vectors.keys()) blocs.set(rootOf(at), [...(blocs.get(rootOf(at)) ?? []), at])
  const sum = (own: readonly number[], member: 'power' | 'voters') =>
    own.reduce((all, at) => all + (vectors[at]?.[member] ?? 0), 0)
  return [...blocs.values()]
    .map((own) => ({ vectors: own, power: sum(own, 'power'), voters: sum(own, 'voters') }))
    .sort((a, b) => b.power - a.power || b.voters - a.voters || (a.vectors[0] ?? 0) - (b.vectors[0] ?? 0))
}

/** Entropies of shares in bits; null without any share. */
export interface Entropies {
  /** -log2 of the largest share. */
  readonly min: number | null
  /** Shannon's entropy. */
  readonly shannon: number | null
}

export function toEntropies(sizes: readonly number[]): Entropies {
  const all = sizes.reduce((sum, size) => sum + size, 0)
  if (all === 0) return { min: null, shannon: null }
  const shares = sizes.filter((size) => size > 0).map((size) => size / all)
  const largest = shares.reduce((most, share) => Math.max(most, share), 0)
  // Zero and not its negative.
  const toBits = (value: number) => (value === 0 ? 0 : -value)
  return {
    min: toBits(Math.log2(largest)),
    shannon: toBits(shares.reduce((sum, share) => sum + share * Math.log2(share), 0)),
  }
}

/** The smallest number of sizes with half of their sum, from the largest on; null if the sum is 0. */
export function countHalf(sizes: readonly number[]): number | null {
  const all = sizes.reduce((sum, size) => sum + size, 0)
  if (all === 0) return null
  let reached = 0
  const sorted = [...sizes].sort((a, b) => b - a)
  const last = sorted.findIndex((size) => {
    reached += size
    return reached * 2 >= all
  })
  return last + 1
}
