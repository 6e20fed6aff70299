/** SQL for a record's public id from the parts of its natural key, like `toId` (docs/contract.md, section 3). */
export const toIdSql = (...parts: readonly string[]): string =>
  `lower(hex(substring(SHA256(concat(${parts.map((part) => `toString(${part})`).join(", '\\x1f', ")})), 1, 12)))`
