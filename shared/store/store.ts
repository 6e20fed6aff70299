/**
 * The connection to ClickHouse, the change events, and stored facts that API, workers and commands read in the same way.
 * Other modules import only this file.
 *
 * - `Database` is the only way to ClickHouse. A statement has a name, parameters and a schema of its rows; values are never
 *   part of its text. `isTransient` decides whether a failed statement may be repeated.
 * - A change event is published after its rows are stored. A process that missed events reads them from the change stream.
 *   If the stream no longer has them, the process drops everything that it cached.
 * - The stored registry decides which entities exist, not the files of a process. `followRegistry` applies a new version
 *   without a restart.
 * - Freshness has one definition for API, watchdog, status command and alerts: `toFreshnessState`.
 * - A lock of `withLock` is a running statement, so a crashed process leaves no lock behind.
 */

export { type ChangeEvent, type ChangeFeed, createChangeFeed, publishChange } from './change-feed.ts'
export {
  bridgeChangeStream,
  type ChangeStream,
  followChangeStream,
  isNewer,
  type StreamedChange,
} from './change-stream.ts'
export {
  createDatabase,
  type Database,
  isTransient,
  readEngineTime,
  type Statement,
  toClickHouseCode,
  withSignal,
} from './clickhouse.ts'
export { countRows } from './count-rows.ts'
export {
  type FailingProviders,
  type ProviderFailure,
  type ProviderResults,
  readFailing,
  readFailingTexts,
  toFailingTexts,
} from './failing-providers.ts'
export {
  type FollowedRegistry,
  followRegistry,
  readInForce,
  readRegistry,
  readRegistryOrFiles,
} from './followed-registry.ts'
export { type Lock, withLock } from './lock.ts'
export { createNoDatabase } from './no-database.ts'
export { probe } from './probe.ts'
export { readQuietSpaces, toQuietNote } from './quiet-spaces.ts'
export {
  type AnswerStamp,
  type RequestKey,
  type RunOutcome,
  readBodies,
  readLastAnswer,
  readRuns,
  readRunsAt,
  recordedRun,
  type StoredAnswer,
  type StoredBody,
  type StoredRun,
} from './raw-runs.ts'
export {
  createReadiness,
  FRESHNESS_STATES,
  type FreshnessState,
  LATE_AFTER_CADENCES,
  type Readiness,
  readNewest,
  toFreshnessState,
  toLagSeconds,
  toStaleAt,
} from './readiness.ts'
export { findRegistryVersion, readStoredSource } from './stored-registry.ts'
export { onCluster, quoteName, toAltered, toLocal, toLogical } from './topology.ts'
export { readUnpricedMembers, toUnpricedNote } from './unpriced-members.ts'
