import { createMemory } from '../../api/answers/memory.ts'
import { createCounts } from '../../api/coverage/counts.ts'
import { createStoredPoints } from '../../api/prices/gathered-points.ts'
import type { Surroundings } from '../../api/route/define-route.ts'
import type { CommitFeed } from '../../shared/store/commits.ts'
import type { BenchDatabase } from './engine.ts'

/** A feed without a source, so that nothing is cached. */
const NOBODY: CommitFeed = {
  version: () => undefined,
  since: () => 0,
  source: 'nobody',
  changes: 0,
  follow: () => {},
  hear: () => {},
  renew: () => {},
  close: () => {},
}

/** The context of a direct call of an API route, at a time in Unix milliseconds, without caches. */
export function surround({ reader, registry, config }: BenchDatabase, now: number): Surroundings {
  const nothing = { maxBytes: 0, commits: NOBODY, db: reader }
  const memory = createMemory(nothing)
  const storedPoints = createStoredPoints(reader, config.api.answersAtOnce)
  const readiness = async () => 0
  const counts = createCounts(NOBODY, reader)
  const connect = () => {}
  return {
    db: reader,
    registry,
    config,
    commits: NOBODY,
    memory,
    storedPoints,
    counts,
    readiness,
    connect,
    now: () => now,
  }
}
