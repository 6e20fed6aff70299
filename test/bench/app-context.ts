import { createChunkCache } from '../../api/cache/chunks.ts'
import { createCounts } from '../../api/coverage/counts.ts'
import { createStoredPoints } from '../../api/prices/points.ts'
import type { AppContext } from '../../api/route/define-route.ts'
import type { ChangeFeed } from '../../shared/store/store.ts'
import type { BenchDatabase } from './engine.ts'

/** A feed without a source, so that nothing is cached. */
const NOBODY: ChangeFeed = {
  version: () => undefined,
  since: () => 0,
  source: 'nobody',
  changes: 0,
  follow: () => {},
  receive: () => {},
  renew: () => {},
  close: () => {},
}

/** The context of a direct call of an API route, at a time in Unix milliseconds, without caches. */
export function surround({ reader, registry, config }: BenchDatabase, now: number): AppContext {
  const nothing = { maxBytes: 0, changeFeed: NOBODY, db: reader }
  const chunks = createChunkCache(nothing)
  const storedPoints = createStoredPoints(reader, config.api.maxAnswers)
  const readiness = async () => 0
  const counts = createCounts(NOBODY, reader)
  const connect = () => {}
  return {
    db: reader,
    registry,
    config,
    changeFeed: NOBODY,
    chunks,
    storedPoints,
    counts,
    readiness,
    connect,
    now: () => now,
  }
}
