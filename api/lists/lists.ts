/**
 * Lists whose records are in memory. Other modules import only this file.
 *
 * - `defineList` declares a list: its record, its datasets and the statement that loads all its records. `defineComputedList`
 *   declares a list of computed records, and `defineGroupSums` one that is computed from two other lists.
 * - One statement loads all records of a list; concurrent requests share it. A change event of one of its datasets drops them.
 * - Every list has the filters, sorts and cursors of `engine.ts`. ClickHouse only writes binary formats, from the keys of the page.
 * - Records without a value are last in both directions. The order is total, so pages neither skip nor repeat a record.
 * - A route with its own kind of answer combines the steps: `loadRecords` or `loadSet`, then `answerSet`.
 */

export {
  answerList,
  answerSet,
  asOfParameter,
  checkPast,
  type ListSource,
  loadRecords,
  loadSet,
  toListHead,
} from './answer.ts'
export { createColumnSet } from './columns.ts'
export { answerComputed, defineComputedList } from './computed-list.ts'
export { EVERYTHING, emptyValue, type ListQuery, type RecordSet } from './engine.ts'
export { defineGroupSums } from './group-sums.ts'
export { defineList, listedDaos, listedTokens, toQuotes, wasThere } from './list.ts'
export { isCurrentAt, lastCurrentRows } from './past-quotes.ts'
