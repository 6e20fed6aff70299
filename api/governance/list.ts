import type { Database } from '../../shared/store/clickhouse.ts'
import type { Answer } from '../answers/answer.ts'
import { toListHead } from '../lists/head.ts'
import { answerFromDatabase } from '../lists/in-database.ts'
import { toKeyset } from '../lists/keyset.ts'
import { EVERYTHING } from '../lists/known-list.ts'
import type { Questions } from '../parameters/questions.ts'
import type { Keyset } from '../records/keyset.ts'
import type { Representation } from '../records/representation.ts'

interface AskedList {
  readonly db: Database
  readonly representation: Representation
  readonly query: {
    readonly sort?: string | undefined
    readonly filter?: string[] | undefined
    readonly limit: number
  }
}

interface Source {
  /** What logs and traces call the statement. */
  readonly name: string
  /** Selects `key`, `name`, which orders what is equal, `as_of`, `record`, and what `keyset` needs. */
  readonly sql: string
  readonly params: Readonly<Record<string, unknown>>
  /** The order of the list unless another one is asked for. */
  readonly keyset: Keyset
}

/**
 * A page of a list that is too long to be held in memory, sorted and filtered by ClickHouse (docs/contract.md, section 8).
 * @throws DataError `storage`
 */
export async function answerLongList(
  { db, representation, query }: AskedList,
  questions: Questions,
  { keyset, ...source }: Source,
): Promise<Answer> {
  const sort = questions.toSort(query.sort)
  const asked = {
    selection: EVERYTHING,
    sort,
    filters: questions.toFilters(query.filter),
    keyset: sort.length === 0 ? keyset : toKeyset(sort),
    limit: query.limit,
  }
  const answer = await answerFromDatabase({ db, representation }, { ...source, there: undefined }, asked)
  return { ...answer, ...toListHead(answer, representation) }
}
