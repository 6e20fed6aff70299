import { z } from 'zod'
import { governors } from '../../../../shared/datasets/governors.ts'
import { EXACT_QUANTITY, exactQuantity, treasuryFlow } from '../../../../shared/datasets/treasury-flows.ts'
import { DAY_MS, toBucketStart } from '../../../../shared/intervals.ts'
import { FLOW_SOURCES } from '../../../flows/day-flows.ts'
import {
  FLOW_IDENTITY,
  findPageBounds,
  NEWEST_FLOWS_FIRST,
  NO_TRANSFERS,
  onPageDays,
  toNewestPage,
} from '../../../flows/newest-flows.ts'
import { findReadEnd } from '../../../flows/read-days.ts'
import {
  FLOW_VALUES,
  filterParameters,
  fromSelection,
  rangeParameters,
  selectFlows,
  toCountSql,
  toFlowParams,
  upTo,
} from '../../../flows/selection.ts'
import { type Answer, answerRecords, toObject, toUsualRecord } from '../../../formats/formats.ts'
import { answerLongList } from '../../../governance/list.ts'
import { LIST_HEADERS } from '../../../http/headers.ts'
import { toListHead } from '../../../lists/lists.ts'
import { oneOf, page } from '../../../parameters/kinds.ts'
import { toQuestions } from '../../../parameters/questions.ts'
import { VALUES_PER_LIST } from '../../../route/cost.ts'
import { defineRoute } from '../../../route/define-route.ts'
import { treasuryDaoKind } from '../../../route/entities.ts'

const exactFlow = treasuryFlow
  .extend({ quantityExact: exactQuantity })
  .meta({ id: 'ExactTreasuryFlow', description: 'A transfer, with its exact quantity. With `exact=true`.' })

const RECORD = toObject(treasuryFlow, FLOW_VALUES)
const EXACT_RECORD = toObject(exactFlow, { ...FLOW_VALUES, quantityExact: EXACT_QUANTITY })

/** Breaks ties of an order: a number that JSON represents exactly. */
const KEY = `bitShiftRight(cityHash64(${FLOW_IDENTITY.map((column) => `f.${column}`).join(', ')}), 12)`

const questions = toQuestions(treasuryFlow)

const counted = z.object({ total: z.int() })

export const treasuryFlowsRoute = defineRoute({
  operation: 'listDaoTreasuryFlows',
  path: '/data/daos/treasury/flows',
  tag: 'DAOs',
  summary: 'Transfers into and out of the treasury of one DAO',
  description:
    'Every stored transfer of a native coin or token into or out of the addresses of the treasury, newest first. `kind` is the reason of a transfer and `rule` the rule that decided it. A transfer between two addresses of the DAO is one record, and so is each side of a swap. `valueUsd` is the quantity at the stored price of that UTC day; it is null without a price. `/data/status/coverage` with `dataset=treasury-flows` states which days were read.',
  one: treasuryDaoKind,
  query: {
    ...rangeParameters,
    ...filterParameters,
    exact: oneOf(
      ['true', 'false'],
      'With `true`, the quantity also as a decimal text with all digits, which a JSON number cannot hold.',
      'true',
    ).optional(),
    ...questions.parameters,
    ...page('transfers', { default: 100, max: 10_000 }),
  },
  record: treasuryFlow,
  recordWith: { record: exactFlow, members: { quantityExact: 'exact=true' }, shapes: [exactFlow] },
  estimateValues: () => VALUES_PER_LIST,
  datasets: [...FLOW_SOURCES, governors],
  headers: LIST_HEADERS,
  handle: async (call) => {
    const { db, query, found: dao, registry, now } = call
    // Without the exact quantity, which is most of the statement to analyse, and without selecting members of the record.
    const representation = toUsualRecord(call.representation, treasuryFlow)
    const record = representation.record === treasuryFlow ? RECORD : EXACT_RECORD
    const { after } = representation
    const selection = selectFlows(query, registry)
    const params = { ...toFlowParams(dao, registry), ...selection.params }
    const isOpen = query.end === undefined || query.end > now()
    const readEnd = isOpen ? await findReadEnd(call, dao.key, now()) : undefined
    // Transfers are rare: an answer up to now is as old as the last reading.
    const toAged = (answer: Answer): Answer => {
      if (!isOpen) return { ...answer, staleAt: null }
      return { ...answer, asOf: readEnd ?? answer.asOf, expiresAt: toBucketStart(now(), '1d') + DAY_MS }
    }
    const name = 'treasury-flows'
    if (query.sort !== undefined || query.filter !== undefined) {
      const sql = `SELECT ${FLOW_IDENTITY.map((column) => `f.${column} AS ${column}`).join(', ')}, ${KEY} AS key, f.transaction_hash AS name,
  f.recorded_at AS as_of, ${record} AS record
${fromSelection(selection)}`
      return toAged(
        await answerLongList({ db, query, representation }, questions, {
          name,
          sql,
          count: toCountSql(selection),
          params,
          keyset: NEWEST_FLOWS_FIRST,
        }),
      )
    }
    const rest = after === '' ? selection : upTo(selection, Number(NEWEST_FLOWS_FIRST.read(after)[0]))
    const readPage = async () => {
      const wanted = { dao: dao.key, limit: query.limit + 1 }
      const found = await onPageDays(db, rest, wanted)
      const bounds = found === undefined ? NO_TRANSFERS : await findPageBounds(db, found, { after, ...wanted })
      const onDays = found ?? rest
      const page = toNewestPage(onDays, { after, record, bounds })
      return answerRecords(
        { db, representation },
        {
          name,
          sql: page.sql,
          params: { ...params, ...onDays.params, ...page.params },
          page: query.limit,
        },
      )
    }
    const [answer, counts] = await Promise.all([
      readPage(),
      db.rows({
        name: `${name}-count`,
        sql: toCountSql(selection),
        params,
        settings: { max_threads: 1 },
        schema: counted,
      }),
    ])
    return toAged({ ...answer, ...toListHead({ total: counts[0]?.total ?? 0, next: answer.next }, representation) })
  },
})
