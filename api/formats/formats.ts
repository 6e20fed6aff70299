/**
 * Records and rows as bytes: JSON, NDJSON, CSV, Parquet and Arrow. Other modules import only this file.
 *
 * - A record is declared once, as a Zod object. Its members, its columns and their ClickHouse types follow from it (`table.ts`,
 *   `columns.ts`). The width of an integer is visible in binary files, so it never changes.
 * - A representation is the format, the members and the page that a request selects (`representation.ts`).
 * - A cursor is valid only for its own query. The order of a keyset is total, so pages neither skip nor repeat a record
 *   (`keyset.ts`).
 * - An answer is complete, or a stream (`answer.ts`). A complete one has its bytes, or deflated blocks that are joined without
 *   compressing them again (`deflated.ts`). ClickHouse writes the numbers, and their digits stay unchanged.
 * - A stream that fails after its first bytes ends with an error, never as a complete shorter body.
 */

export {
  type Answer,
  type AssembledAnswer,
  type AssembledBody,
  type BytesAnswer,
  DataChanged,
  inTime,
  MOST_CACHED,
  openFramed,
  type StreamAnswer,
  toBrokenOff,
  toStream,
  withByteOrderMark,
} from './answer.ts'
export { toColumns, toJsonType, toObject } from './columns.ts'
export {
  countBytes,
  deflateCached,
  deflateQuickly,
  inflate,
  type Part,
  toText,
  writeGzip,
  writeGzipBatches,
  writeText,
} from './deflated.ts'
export {
  compareValues,
  defineKeyset,
  defineOrder,
  type Keyset,
  ORDERED_CHARACTERS,
  type Place,
  refuseCursor,
  type SortOrder,
  type SortPart,
  toOrdered,
} from './keyset.ts'
export { findOwnersOfPage, IS_ANY, inTables, type Owned, toOwned } from './owned.ts'
export { answerRecords } from './records.ts'
export {
  chooseFormat,
  FORMAT_NAMES,
  FORMATS,
  type Format,
  formatByName,
  type Representation,
  toDisposition,
  toJsonSql,
  toQueryKey,
  toRepresentation,
  toUsualRecord,
} from './representation.ts'
export {
  JSON_SETTINGS,
  type Rows,
  readAnswer,
  readWritten,
  type Slice,
  toRows,
  toSlice,
  writeArray,
} from './rows.ts'
export {
  MEMBER_TYPES,
  type Member,
  type MemberKind,
  type RecordSource,
  toComparable,
  toMembers,
  writeRecords,
} from './table.ts'
