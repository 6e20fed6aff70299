import { isDeepStrictEqual } from 'node:util'
import { daoLinks } from '../datasets/daos.ts'
import { DataError, toReason } from '../errors.ts'
import { HOUR_MS } from '../intervals.ts'
import { liveProxy } from '../registry/ends.ts'
import { type FoundLinks, SOCIAL_FIELDS, withFoundLinks } from '../registry/found-links.ts'
import { loadRegistry, type Registry, toRegistry } from '../registry/registry.ts'
import type { RegistryPart } from '../registry/source.ts'
import type { Logger } from '../telemetry/log.ts'
import { createOutageLog } from '../telemetry/outage-log.ts'
import type { ChangeFeed } from './change-feed.ts'
import type { Database } from './clickhouse.ts'
import { readFoundLinks } from './found-links.ts'
import { findRegistryVersion, readStoredSource } from './stored-registry.ts'

/** A registry that changes while the process runs: imports store new versions, and providers find missing links. */
export interface FollowedRegistry {
  /**
   * A live proxy of the current registry; read a member at each use. For several consistent members take a snapshot
   * with `toFixed`.
   */
  readonly registry: Registry
  /** Loads the active registry. Keeps the previous one if it is unreachable or invalid. */
  refresh(): Promise<void>
  /**
   * Returns the active registry, for records that name its version. Returns the previous one if the active one is
   * invalid for this program.
   * @throws DataError `storage` if the database is unreachable.
   */
  readCurrent(): Promise<Registry>
  stop(): void
}

/** Poll interval of the active version, which reads one row. */
const POLL_MS = 10_000
/** Time limit of a poll. */
const PATIENCE_MS = 5_000

/**
 * Returns the active registry, or a part of it, without found links: the stored one, else that of the files. `signal`
 * limits only the lookup of the version.
 * @throws DataError `storage`, or RegistryError
 */
export async function readInForce(
  db: Database,
  { signal, part }: { readonly signal?: AbortSignal; readonly part?: RegistryPart } = {},
): Promise<Registry> {
  const stored = await findRegistryVersion(db, signal)
  return stored === undefined ? loadRegistry() : toRegistry(await readStoredSource(db, stored, part))
}

/**
 * Returns the active registry with the found links, for programs that read it once.
 * @throws DataError `storage`, or RegistryError
 */
export const readRegistry = async (db: Database): Promise<Registry> =>
  withFoundLinks(await readInForce(db), await readFoundLinks(db))

/**
 * Like `readInForce`, for programs that also run without the database: falls back to the files while it is unreachable.
 * @throws RegistryError
 */
export async function readRegistryOrFiles(db: Database, log: Logger): Promise<Registry> {
  try {
    return await readInForce(db, { signal: AbortSignal.timeout(PATIENCE_MS) })
  } catch (error) {
    if (!(error instanceof DataError)) throw error
    log.warn({ reason: toReason(error) }, 'the active registry cannot be read: that of the files is used until it can')
    return loadRegistry()
  }
}

export interface FollowOptions {
  readonly log: Logger
  /** The part to read of each new registry; `first` must be the same part. */
  readonly part?: RegistryPart
  /**
   * Signals newly found links. Its versions are renewed when the registry or its links change, because derived data is
   * then stale.
   */
  readonly changeFeed?: Pick<ChangeFeed, 'follow' | 'renew'>
}

/**
 * Follows the active registry, starting with `first`, which must not contain found links, because these may change.
 * Links are read by `refresh`, with each new registry, after a change event of the links dataset, and every hour. The
 * job collects links once a day. A part without DAOs has no links.
 */
export function followRegistry(
  db: Database,
  first: Registry,
  { log, part = 'whole', changeFeed }: FollowOptions,
): FollowedRegistry {
  let [base, now] = [first, first]
  const refusal = createRefusal(log)
  const logFound = createFoundLog(log)
  const links = createLinksReader(db)

  const readNewer = async (): Promise<Registry | undefined> => {
    const stored = await findRegistryVersion(db, AbortSignal.timeout(PATIENCE_MS))
    if (stored === undefined || refusal.isOf(stored.version)) return undefined
    // A version can become active again after another one. In between, statements have joined the other one.
    if (stored.version === base.version && stored.changedAt === base.changedAt) return undefined
    const source = await readStoredSource(db, stored, part)
    return refusal.unlessRefused(stored.version, () => toRegistry(source))
  }
  const update = async (alsoLinks: boolean) => {
    const newer = await readNewer()
    const isNewVersion = newer?.version !== base.version
    if (newer === undefined && !alsoLinks) return
    let haveLinksChanged = false
    if (part === 'whole') {
      haveLinksChanged = await links.read()
      base = newer ?? base
      now = withFoundLinks(base, links.found)
      logFound(now)
    } else base = now = newer ?? base
    if (newer === undefined) return haveLinksChanged ? changeFeed?.renew() : undefined
    const { version, tokens } = newer
    const daos = part === 'whole' ? { daos: newer.daos.length } : {}
    const message = isNewVersion ? 'a new registry is active' : 'the registry is active again'
    log.info({ version, tokens: tokens.length, ...daos }, message)
    changeFeed?.renew()
  }

  const outage = createOutageLog(log, 'warn')
  const tryUpdate = async (alsoLinks: boolean) => {
    try {
      await update(alsoLinks)
      outage.works('registry')
    } catch (error) {
      outage.failed('registry', { reason: toReason(error) }, 'the active registry cannot be read')
    }
  }
  let last = Promise.resolve()
  let looking = 0
  let isStopped = false
  const inTurn = (work: () => Promise<void>): Promise<void> => {
    looking += 1
    const turn = last.then(work).finally(() => (looking -= 1))
    // A failure is reported to its caller only and does not block the next call.
    last = turn.catch(() => undefined)
    return turn
  }
  const refresh = (alsoLinks: boolean) => inTurn(() => tryUpdate(alsoLinks))
  const timer = setInterval(() => {
    if (looking === 0) void refresh(links.areDue())
  }, POLL_MS)
  timer.unref()
  changeFeed?.follow((change) => {
    if (isStopped || (change !== undefined && change.dataset !== daoLinks.name)) return
    links.expire()
    void refresh(true)
  })
  return {
    registry: liveProxy(() => now),
    refresh: () => refresh(true),
    readCurrent: async () => {
      await inTurn(() => update(false))
      return now
    },
    stop: () => {
      isStopped = true
      clearInterval(timer)
    },
  }
}

/** The found links as last read. */
function createLinksReader(db: Database) {
  let found: FoundLinks = new Map()
  let readAt = performance.now()
  let [expiries, seen] = [0, 0]
  return {
    get found() {
      return found
    },
    /** Marks the links as outdated. */
    expire: () => {
      expiries += 1
    },
    areDue: () => seen !== expiries || performance.now() - readAt >= HOUR_MS,
    /** Returns whether the links have changed. */
    read: async (): Promise<boolean> => {
      const until = expiries
      const read = await readFoundLinks(db)
      const hasChanged = !isDeepStrictEqual(read, found)
      ;[found, seen, readAt] = [read, until, performance.now()]
      return hasChanged
    },
  }
}

/** Logs an invalid version and reads it only once. */
function createRefusal(log: Logger) {
  let refused: string | undefined
  return {
    isOf: (version: string) => version === refused,
    unlessRefused: async (version: string, make: () => Promise<Registry>): Promise<Registry | undefined> => {
      try {
        return await make()
      } catch (error) {
        if (!(error instanceof DataError)) throw error
        refused = version
        log.error(
          { version, reason: toReason(error) },
          'the active registry is invalid for this program: the previous one is still used',
        )
        return undefined
      }
    },
  }
}

/** Logs the number of found links in use whenever it changes. */
function createFoundLog(log: Logger) {
  let logged = ''
  return ({ daos }: Registry) => {
    const found = Object.fromEntries(
      SOCIAL_FIELDS.map((field) => [field, daos.filter((dao) => dao.found?.includes(field)).length]),
    )
    if (JSON.stringify(found) !== logged)
      log.info({ found }, 'missing links of the registry are filled with discovered links')
    logged = JSON.stringify(found)
  }
}
