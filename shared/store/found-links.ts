import { z } from 'zod'
import { toReason } from '../errors.ts'
import { HOUR_MS } from '../intervals.ts'
import { type FoundLinks, SOCIAL_FIELDS, withFoundLinks } from '../registry/found-links.ts'
import { loadRegistry, type Registry } from '../registry/registry.ts'
import type { Logger } from '../telemetry/log.ts'
import type { Database } from './clickhouse.ts'

const linked = z.object({ key: z.number(), links: z.record(z.string(), z.string()) })

/** A registry that goes on with what is found. */
export interface FollowedRegistry {
  /** The registry as it is now: read a member of it when it is needed, and keep none. */
  readonly registry: Registry
  /** Reads the found links now. Where they cannot be read what was found before stays. */
  refresh(): Promise<void>
  stop(): void
}

/**
 * The registry with the links that providers found so far, for a program that needs it once.
 * @throws DataError `storage`
 */
export const readRegistry = async (db: Database, files: Registry = loadRegistry()): Promise<Registry> =>
  withFoundLinks(files, await readFoundLinks(db))

/** The registry with the links that providers found, read again every hour: they are looked for once a day. */
export function followFoundLinks(db: Database, files: Registry, log: Logger): FollowedRegistry {
  let now = files
  let counted = ''
  const refresh = async () => {
    try {
      now = await readRegistry(db, files)
    } catch (error) {
      log.warn({ reason: toReason(error) }, 'the links that providers found cannot be read')
      return
    }
    const found = Object.fromEntries(
      SOCIAL_FIELDS.map((field) => [field, now.daos.filter((dao) => dao.found?.includes(field)).length]),
    )
    if (JSON.stringify(found) !== counted)
      log.info({ found }, 'links that providers found stand in where the registry has none')
    counted = JSON.stringify(found)
  }
  const timer = setInterval(() => void refresh(), HOUR_MS)
  timer.unref()
  const registry: Registry = {
    ...files,
    get daos() {
      return now.daos
    },
    get daoById() {
      return now.daoById
    },
    get daoBySlug() {
      return now.daoBySlug
    },
  }
  return { registry, refresh, stop: () => clearInterval(timer) }
}

async function readFoundLinks(db: Database): Promise<FoundLinks> {
  const sql = 'SELECT key, links FROM daos FINAL WHERE live AND notEmpty(links)'
  const rows = await db.rows({ name: 'found-links', sql, schema: linked })
  return new Map(rows.map(({ key, links }) => [key, links]))
}
