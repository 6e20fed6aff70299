import type { Surroundings } from '../../api/define.ts'
import type { BenchDatabase } from './engine.ts'

/** What a route of the API gets when it is asked directly, at a time in Unix milliseconds: nothing is cached. */
export function surround({ reader, registry, config }: BenchDatabase, now: number): Surroundings {
  return { db: reader, registry, config, commits: { version: () => undefined, close: () => {} }, now: () => now }
}
