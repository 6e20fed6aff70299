import { hash } from 'node:crypto'

/**
 * A record's public id: 24 lower-case hex characters from its natural key, so a rebuilt database has the same ids.
 * Source: docs/contract.md, section 3. The parts are joined with a separator that no natural key contains.
 */
export function toId(...naturalKey: readonly (string | number)[]): string {
  return hash('sha256', naturalKey.join('\u001f'), 'hex').slice(0, 24)
}

/** SQL for a record's public id from the parts of its natural key, like `toId` (docs/contract.md, section 3). */
export const toIdSql = (...parts: readonly string[]): string =>
  `lower(hex(substring(SHA256(concat(${parts.map((part) => `toString(${part})`).join(", '\\x1f', ")})), 1, 12)))`

/**
 * The integer key of an entity in ClickHouse: the first 52 bits of its id, which a JavaScript number represents
 * exactly. Sorting and filtering by integers is cheaper than by ids. The registry rejects two equal keys.
 */
export function toKey(id: string): number {
  return Number.parseInt(id.slice(0, 13), 16)
}
