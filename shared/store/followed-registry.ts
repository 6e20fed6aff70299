import { isDeepStrictEqual } from 'node:util'
import { daoLinks } from '../datasets/daos.ts'
import { DataError, toReason } from '../errors.ts'
import { HOUR_MS } from '../intervals.ts'
import { toLiving } from '../registry/ends.ts'
import { type FoundLinks, SOCIAL_FIELDS, withFoundLinks } from '../registry/found-links.ts'
import { loadRegistry, type Registry, toRegistry } from '../registry/registry.ts'
import type { RegistryPart } from '../registry/source.ts'
import type { Logger } from '../telemetry/log.ts'
import { createOutageLog } from '../telemetry/outage-log.ts'
import type { Database } from './clickhouse.ts'
import type { CommitFeed } from './commits.ts'
import { readFoundLinks } from './found-links.ts'
import { findRegistryVersion, readStoredSource } from './stored-registry.ts'

/** A registry that changes under way: others store a new one, and providers find links that it lacks. */
export interface FollowedRegistry {
  /**
   * The registry as it is now: read a member of it when it is needed. Whoever needs several that fit each other has
   * `toFixed` of it.
   */
  readonly registry: Registry
  /** Reads what is in force now. Where it cannot be read, or makes no sense, what was in force before stays. */
  refresh(): Promise<void>
  /**
   * The registry that is in force at this moment, for what is noted as made with it; the one before where that makes no sense
   * here.
   * @throws DataError `storage` where nobody can tell.
   */
  readCurrent(): Promise<Registry>
  stop(): void
}

/** How often it is asked whether a new registry is in force, which reads one row. */
const ASK_MS = 10_000
/** An answer later than that is worth nothing. */
const PATIENCE_MS = 5_000

/**
 * The registry that is in force, or a part of it, as people wrote it: the stored one, or all that the files have where none
 * was ever stored. Which one it is has to be known before the signal is aborted.
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
 * The registry that is in force, with the links that providers found so far, for a program that needs it once.
 * @throws DataError `storage`, or RegistryError
 */
export const readRegistry = async (db: Database): Promise<Registry> =>
  withFoundLinks(await readInForce(db), await readFoundLinks(db))

/**
 * As `readInForce`, for a program that serves without the database as well: while that does not answer the registry is
 * that of the files.
 * @throws RegistryError
 */
export async function readRegistryOrFiles(db: Database, log: Logger): Promise<Registry> {
  try {
    return await readInForce(db, { signal: AbortSignal.timeout(PATIENCE_MS) })
  } catch (error) {
    if (!(error instanceof DataError)) throw error
    log.warn({ reason: toReason(error) }, 'the registry in force cannot be read: that of the files is served meanwhile')
    return loadRegistry()
  }
}

export interface FollowOptions {
  readonly log: Logger
  /** What is read of each new registry; `first` is the same part. */
  readonly part?: RegistryPart
  /** Tells when links may have been found. Hears when another registry is in force, or other links are: what was made with those before is no longer true. */
  readonly commits?: Pick<CommitFeed, 'follow' | 'renew'>
}

/**
 * Follows the registry that is in force, beginning with `first`, which must not have found links: another may be found in
 * their place. They are read by `refresh`, with each new registry, when `commits` tells that some were stored, and every
 * hour without it, as they are looked for once a day. Of a part without DAOs there are none to find.
 */
export function followRegistry(
  db: Database,
  first: Registry,
  { log, part = 'whole', commits }: FollowOptions,
): FollowedRegistry {
  let [base, now] = [first, first]
  const refusal = createRefusal(log)
  const tellFound = createTellFound(log)
  const links = createLinksReader(db)

  const readNewer = async (): Promise<Registry | undefined> => {
    const stored = await findRegistryVersion(db, AbortSignal.timeout(PATIENCE_MS))
    if (stored === undefined || refusal.isOf(stored.version)) return undefined
    // The same one may come into force once more: what statements join to it was another's meanwhile.
    if (stored.version === base.version && stored.changedAt === base.changedAt) return undefined
    const source = await readStoredSource(db, stored, part)
    return refusal.unlessRefused(stored.version, () => toRegistry(source))
  }
  const look = async (alsoLinks: boolean) => {
    const newer = await readNewer()
    const isOther = newer?.version !== base.version
    if (newer === undefined && !alsoLinks) return
    let areOthers = false
    if (part === 'whole') {
      areOthers = await links.read()
      base = newer ?? base
      now = withFoundLinks(base, links.found)
      tellFound(now)
    } else base = now = newer ?? base
    if (newer === undefined) return areOthers ? commits?.renew() : undefined
    const { version, tokens } = newer
    const daos = part === 'whole' ? { daos: newer.daos.length } : {}
    const message = isOther ? 'a new registry is in force' : 'the registry is in force once more'
    log.info({ version, tokens: tokens.length, ...daos }, message)
    commits?.renew()
  }

  const outage = createOutageLog(log, 'warn')
  const tryLook = async (alsoLinks: boolean) => {
    try {
      await look(alsoLinks)
      outage.works('registry')
    } catch (error) {
      outage.failed('registry', { reason: toReason(error) }, 'the registry in force cannot be read')
    }
  }
  let last = Promise.resolve()
  let looking = 0
  let isStopped = false
  const inTurn = (work: () => Promise<void>): Promise<void> => {
    looking += 1
    const turn = last.then(work).finally(() => (looking -= 1))
    // The next one's turn comes however this one ends; its failure is told to the one who asked.
    last = turn.catch(() => undefined)
    return turn
  }
  const refresh = (alsoLinks: boolean) => inTurn(() => tryLook(alsoLinks))
  const timer = setInterval(() => {
    if (looking === 0) void refresh(links.areDue())
  }, ASK_MS)
  timer.unref()
  commits?.follow((change) => {
    if (isStopped || (change !== undefined && change.dataset !== daoLinks.name)) return
    links.expire()
    void refresh(true)
  })
  return {
    registry: toLiving(() => now),
    refresh: () => refresh(true),
    readCurrent: async () => {
      await inTurn(() => look(false))
      return now
    },
    stop: () => {
      isStopped = true
      clearInterval(timer)
    },
  }
}

/** The links that were found when they were read last. */
function createLinksReader(db: Database) {
  let found: FoundLinks = new Map()
  let readAt = performance.now()
  let [expiries, seen] = [0, 0]
  return {
    get found() {
      return found
    },
    /** There may be others. */
    expire: () => {
      expiries += 1
    },
    areDue: () => seen !== expiries || performance.now() - readAt >= HOUR_MS,
    /** Whether there are others. */
    read: async (): Promise<boolean> => {
      const until = expiries
      const read = await readFoundLinks(db)
      const areOthers = !isDeepStrictEqual(read, found)
      ;[found, seen, readAt] = [read, until, performance.now()]
      return areOthers
    },
  }
}

/** A version whose records make no sense to this program is told and asked for once. */
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
          'the registry in force makes no sense here: the one before stays',
        )
        return undefined
      }
    },
  }
}

/** Tells how many links stand in for those that the registry lacks, whenever that is another number. */
function createTellFound(log: Logger) {
  let told = ''
  return ({ daos }: Registry) => {
    const found = Object.fromEntries(
      SOCIAL_FIELDS.map((field) => [field, daos.filter((dao) => dao.found?.includes(field)).length]),
    )
    if (JSON.stringify(found) !== told)
      log.info({ found }, 'links that providers found stand in where the registry has none')
    told = JSON.stringify(found)
  }
}
