import { hash } from 'node:crypto'

/**
 * A record's public id: 24 lower-case hex characters from its natural key, so a rebuilt database has the same ids.
 * Source: docs/contract.md, section 3. The parts are joined with a separator that no natural key contains.
 */
export function toId(...naturalKey: readonly (string | number)[]): string {
  return hash('sha256', naturalKey.join('\u001f'), 'hex').slice(0, 24)
}

/**
 * The integer under which ClickHouse stores an entity: the id's first 52 bits, the most that a JavaScript number
 * holds exactly. Sorting and filtering by it is cheaper than by the id; the registry refuses two equal keys.
 */
export function toKey(id: string): number {
  return Number.parseInt(id.slice(0, 13), 16)
}
