import type { Benchmark } from './define.ts'
import { dexData } from './dex-data.ts'
import { sentiment } from './sentiment.ts'
import { serving } from './serving.ts'

/** Every benchmark, in the order in which they run and stand on the page. */
export const benchmarks = [serving, dexData, sentiment] as const satisfies readonly Benchmark[]
