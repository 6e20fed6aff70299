/** A record's public id as SQL, out of the parts of its natural key, as `toId` makes it (docs/contract.md, section 3). */
export const toIdSql = (...parts: readonly string[]): string =>
  `lower(hex(substring(SHA256(concat(${parts.map((part) => `toString(${part})`).join(", '\\x1f', ")})), 1, 12)))`
