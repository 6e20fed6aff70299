import type { SortKey } from '../parameters/questions.ts'
import { defineKeyset, type Keyset } from '../records/keyset.ts'
import { MEMBER_TYPES } from '../records/members.ts'
import { ORDERED_CHARACTERS } from '../records/order.ts'
import { toEmpty } from './record-set.ts'

/** Exact name matches first, then by market cap, the largest first, then by name (docs/contract.md, section 2). */
const BY_MARKET_CAP = defineKeyset(
  ['toUInt8(NOT has({exact: Array(UInt64)}, key))', 'UInt8'],
  ['toUInt8(isNull(market_cap))', 'UInt8'],
  ['-ifNull(market_cap, 0)', 'Float64'],
  ['name', 'String'],
  ['key', 'UInt64'],
)

/** By members of the record, what is unknown last, then by name and id (docs/contract.md, section 8). */
export function toKeyset(sort: readonly SortKey[]): Keyset {
  if (sort.length === 0) return BY_MARKET_CAP
  const parts = sort.flatMap(({ member, isDescending }) => {
    const ordered = member.kind === 'text' ? `substringUTF8(${member.sql}, 1, ${ORDERED_CHARACTERS})` : member.sql
    const value = `ifNull(${ordered}, ${JSON.stringify(toEmpty(member)).replaceAll('"', "'")})`
    const type = MEMBER_TYPES[member.kind]
    return [
      [`toUInt8(isNull(${member.sql}))`, 'UInt8'] as const,
      isDescending ? ([value, type, 'descending'] as const) : ([value, type] as const),
    ]
  })
  return defineKeyset(...parts, ['name', 'String'], ['key', 'UInt64'])
}
