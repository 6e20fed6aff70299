import type { Surroundings } from '../../api/define.ts'
import { createFragments } from '../../api/fragments.ts'
import type { BenchDatabase } from './engine.ts'

/** What a route of the API gets when it is asked directly, at a time in Unix milliseconds: nothing is kept. */
export function surround({ reader, registry, config }: BenchDatabase, now: number): Surroundings {
  const commits = {
    version: () => undefined,
    since: () => 0,
    source: 'nobody' as const,
    changes: 0,
    follow: () => {},
    close: () => {},
  }
  const fragments = createFragments({ maxBytes: 0, commits })
  return { db: reader, registry, config, commits, fragments, now: () => now }
}
