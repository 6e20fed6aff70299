import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { INTERVALS } from '../../shared/intervals.ts'
import type { Token } from '../../shared/registry/entities.ts'
import type { Answer } from '../answers/answer.ts'
import { Problem } from '../problem/problem.ts'
import { toObject } from '../records/columns.ts'
import type { Representation } from '../records/representation.ts'
import type { Surroundings } from '../route/define-route.ts'
import { answerQuestion } from '../series/asked-series.ts'
import { inFrame, toTokenFrame } from '../series/frame.ts'
import type { SeriesQuestion } from '../series/questions.ts'
import type { SeriesSource } from '../series/series-source.ts'
import { countCoarse, toCoarseHeaders } from './coarse.ts'
import { POINT, pointsSql, pricePoint, priceRow } from './points.ts'

/** A point of the token alone, and with whose it is, as a table has it. */
const RECORDS = {
  point: { record: pricePoint, values: POINT, constants: {} },
  row: {
    record: priceRow,
    values: `{id: String}, {name: String}, {symbol: String}, ${POINT}`,
    constants: { id: '{id: String}', name: '{name: String}', symbol: '{symbol: String}' },
  },
} as const

function toSource({ key, id, name, symbol }: Token, isTable: boolean): SeriesSource {
  const { record, values, constants } = RECORDS[isTable ? 'row' : 'point']
  return {
    name: 'historic-financial',
    dataset: tokenPrices,
    record,
    time: 'timestamp',
    constants,
    intervals: INTERVALS,
    sql: (interval) =>
      `SELECT bucket AS row_at, as_of, ${toObject(record, values)} AS record FROM (${pointsSql(interval).all})`,
    params: { token: key, id, name, symbol },
  }
}

/**
 * The points of one token in an order, at a number or with a row for every bucket (docs/contract.md, section 8).
 * @throws DataError `storage`, Problem `invalid_parameter` for several tokens.
 */
export async function answerAskedPrices(
  call: Surroundings & { readonly representation: Representation; readonly entities: readonly Token[] },
  question: SeriesQuestion & {
    readonly start: number
    readonly end?: number | undefined
    readonly limit?: number | undefined
  },
): Promise<Answer> {
  const [token, other] = call.entities
  if (token === undefined || other !== undefined) {
    throw new Problem('invalid_parameter', 'order=desc, points and fill take one token: ask for each alone.', {
      param: 'id',
    })
  }
  const isTable = call.representation.format !== 'json'
  const { answer, interval, covered, points } = await answerQuestion(call, toSource(token, isTable), question)
  const answered = { ...covered, tokens: [token.key], interval, resumed: token.key, resume: covered.from }
  const coarse = points === 0 ? 0 : await countCoarse(call.db, answered, Promise.resolve(points))
  const described = { ...answer, headers: { ...answer.headers, ...toCoarseHeaders(coarse) } }
  return isTable ? described : inFrame(described, toTokenFrame(token))
}
