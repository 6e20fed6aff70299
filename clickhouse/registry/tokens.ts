import { z } from 'zod'
import type { Registry } from '../../shared/registry/registry.ts'
import type { Database } from '../../shared/store/store.ts'
import type { Logger } from '../../shared/telemetry/log.ts'

const tokenRecord = z.object({
  key: z.number(),
  id: z.string(),
  symbol: z.string(),
  name: z.string(),
  contract_address: z.string(),
  decimals: z.number(),
  dao_id: z.string(),
  dao_key: z.number(),
  cmc_id: z.string().nullable(),
  chain_id: z.string(),
  live: z.boolean(),
  live_price: z.boolean(),
})

type TokenRecord = z.infer<typeof tokenRecord>

/** A stored record with its time in Unix milliseconds, by the clock of its writer. */
const storedToken = tokenRecord.extend({ at: z.int() })

/**
 * Updates the `tokens` table to the registry's files. The later version of a record wins, so a new row always has a
 * later time than the stored one, even if that was written by a machine with a fast clock.
 */
export async function storeTokens(db: Database, registry: Registry, log: Logger): Promise<boolean> {
  const { changed, storedAt } = await findChanged(db, registry)
  if (changed.length === 0) return false
  const now = Date.now()
  const toChangedAt = (key: number) => new Date(Math.max(now, (storedAt.get(key) ?? 0) + 1)).toISOString()
  await db.insert({
    table: 'tokens',
    rows: changed.map((record) => ({ ...record, changed_at: toChangedAt(record.key) })),
  })
  log.info({ tokens: registry.tokens.length, changed: changed.length }, 'tokens of the registry stored')
  return true
}

/** Returns the records of the `tokens` table that differ from the registry, a line each. */
export async function compareTokens(db: Database, registry: Registry): Promise<string[]> {
  const { changed } = await findChanged(db, registry)
  return changed.map(({ symbol, contract_address }) => `tokens: ${symbol} (${contract_address}) differs in the table`)
}

/** The records to write so that the table equals the registry. Removed records are marked as not live. */
async function findChanged(db: Database, registry: Registry) {
  const columns = Object.keys(tokenRecord.shape).join(', ')
  const rows = await db.rows({
    name: 'stored-tokens',
    sql: `SELECT ${columns}, toUnixTimestamp64Milli(changed_at) AS at FROM tokens FINAL`,
    schema: storedToken,
  })
  const storedAt = new Map(rows.map(({ key, at }) => [key, at]))
  const stored = rows.map(({ at: _, ...record }): TokenRecord => record)
  const records = toRecords(registry)
  const registryKeys = new Set(records.map(({ key }) => key))
  const gone = stored
    .filter(({ key, live }) => live && !registryKeys.has(key))
    .map((record) => ({ ...record, live: false }))
  const storedByKey = new Map(stored.map((record) => [record.key, JSON.stringify(record)]))
  const changed = [...records.filter((record) => storedByKey.get(record.key) !== JSON.stringify(record)), ...gone]
  return { changed, storedAt }
}

function toRecords(registry: Registry): TokenRecord[] {
  return registry.tokens.map((token) => {
    const dao = registry.daoBySlug.get(token.dao)
    const chain = registry.chainBySlug.get(token.chain)
    if (dao === undefined || chain === undefined) throw new Error(`${token.symbol}: the registry was not validated`)
    return {
      key: token.key,
      id: token.id,
      symbol: token.symbol,
      name: token.name,
      contract_address: token.contractAddress,
      decimals: token.decimals,
      dao_id: dao.id,
      dao_key: dao.key,
      cmc_id: token.cmcId,
      chain_id: chain.id,
      live: token.live,
      live_price: token.livePrice,
    }
  })
}
