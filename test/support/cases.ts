import { createRandom } from './random.ts'

const DAY_MS = 86_400_000

/** Factor of the number of random cases: 1 in a usual run, more in `npm run test:long`. Set by TEST_CASES. */
const FACTOR = Number(process.env.TEST_CASES ?? 1)
if (!(FACTOR > 0)) throw new Error(`TEST_CASES: expected a number above 0, got ${process.env.TEST_CASES}`)

/**
 * Seed of all random cases of a run: the number of the day, so that each day tries other cases. TEST_SEED repeats a run.
 * The report at the end of a run prints both settings.
 */
export const SEED = Number(process.env.TEST_SEED ?? Math.floor(Date.now() / DAY_MS))
if (!Number.isSafeInteger(SEED)) throw new Error(`TEST_SEED: expected a whole number, got ${process.env.TEST_SEED}`)

/** The number of random cases in this run, from the number in a usual run. */
export const countCases = (usual: number): number => Math.max(1, Math.round(usual * FACTOR))

export const casesSettings = `TEST_SEED=${SEED} TEST_CASES=${FACTOR}`

/** Random values of a list, in its order; the name makes the selections of two tests differ. */
export function selectCases<T>(values: readonly T[], usual: number, name: string): T[] {
  const { next } = createRandom([...name].reduce((sum, letter) => sum * 31 + letter.charCodeAt(0), SEED))
  const ranks = values.map((_, at) => ({ at, rank: next() })).sort((a, b) => a.rank - b.rank)
  const selected = new Set(ranks.slice(0, countCases(usual)).map(({ at }) => at))
  return values.filter((_, at) => selected.has(at))
}
