import { z } from 'zod'
import { askEach, type Failed } from '../ask-each.ts'
import { type Call, defineTool, type Told } from '../define-tool.ts'
import { Mistake } from '../mistake.ts'
import { checkWhere, isId, type Parameters, toCursor, toFacts, toOf, toPath, toRecords } from '../requests.ts'
import { Refused, type Reply, type Source } from '../source.ts'
import { countUnknown, cutToSize, type Json, shorten, toPaths, valueAt } from '../table.ts'
import { findTopic, type Topic } from '../topics.ts'

/** Each is a request of its own where a topic is about one. */
const MOST_ENTITIES = 20

/** Arguments of the tool, or its own matter. */
const NOT_IN_WHERE = ['id', 'name', 'fields', 'sort', 'filter', 'limit', 'cursor', 'format']

const input = z.strictObject({
  topic: z.string().max(80).describe('Such as tokens, daos/treasury, index/weights; see describe.'),
  of: z
    .array(z.string().min(1).max(200))
    .max(MOST_ENTITIES)
    .optional()
    .describe(
      'Names or ids. Topics about one token or DAO are asked for each in turn; limit, sort and filter hold for each.',
    ),
  fields: z
    .array(z.string().max(120))
    .max(30)
    .optional()
    .describe('Member paths: name, financialData.price. Fewer fields, more rows.'),
  sort: z.string().max(300).optional().describe('Paths with commas between, - before one for descending.'),
  filter: z
    .array(z.string().max(300))
    .max(10)
    .optional()
    .describe(
      'All must hold: financialData.marketCap>=1000000, treasuryData.valueUsd!=null. Operators >= <= != > < =.',
    ),
  where: z
    .record(z.string(), z.union([z.string(), z.array(z.string())]))
    .optional()
    .describe('Other parameters of the topic: category, chain, asOf, state, start, end.'),
  limit: z.int().min(1).max(500).default(20),
  cursor: z.string().max(2000).optional().describe('`next` of an answer: what follows it.'),
})

type QueryCall = Call<z.output<typeof input>>

/** A line of the answer, and whose it is where several were asked for in turn. */
interface Row {
  readonly of: string | undefined
  readonly record: Json
}

/** @throws Mistake for an argument that the topic has no parameter for. */
function checkArguments(topic: Topic, { of = [], sort, filter, where = {}, cursor }: QueryCall['input']): void {
  checkWhere(topic, where, NOT_IN_WHERE)
  const refused = Object.entries({ sort, filter, cursor }).filter(
    ([name, value]) => value !== undefined && !topic.has(name),
  )
  if (refused.length > 0)
    throw new Mistake(`"${topic.name}" takes no ${refused.map(([name]) => name).join(' and no ')}.`)
  if (of.length > 0 && topic.takes === 'none') throw new Mistake(`"${topic.name}" is about all together: leave out of.`)
  if (of.length > 1 && cursor !== undefined) throw new Mistake('cursor goes on with one of them: give one in of.')
  const named = of.find((one) => !isId(one))
  if (topic.mayBeAll && named !== undefined)
    throw new Mistake(`"${topic.name}" goes by ids: find that of ${named} with search, or leave out of for all.`)
  if (of.length > 0 || topic.takes !== 'one' || where.proposal !== undefined || topic.mayBeAll) return
  throw new Mistake(`"${topic.name}" is about one token or DAO: name it in of.`)
}

function toParameters(
  topic: Topic,
  { fields, sort, filter, where, limit, cursor }: QueryCall['input'],
  of: readonly string[],
): Parameters {
  const known = new Set(topic.members.map(({ path }) => path))
  const unknown = fields?.filter((path) => !known.has(path)) ?? []
  if (unknown.length > 0)
    throw new Mistake(`"${topic.name}" has no ${unknown.join(', ')}: describe it to see its members.`)
  // By whose it is, nobody of several has to be asked for again.
  const whose = topic.takes === 'several' ? ['_id', 'name'].filter((path) => known.has(path)) : []
  const top = fields && [...new Set([...whose, ...fields.map((path) => path.split(/\[|\./)[0] ?? path)])]
  return {
    ...toOf(of),
    ...where,
    sort,
    filter,
    ...(topic.has('fields') && top !== undefined ? { fields: top.join() } : {}),
    // Where there are no pages it means days.
    ...(topic.has('cursor') ? { limit: String(limit), cursor } : {}),
  }
}

/** The path that is asked for. */
const toAskedPath = (topic: Topic, parameters: Parameters) =>
  toPath(topic.path, { ...parameters, ...(topic.has('format') ? { format: 'ndjson' } : {}) })

/** The same of JSON, for people to open. */
const toSourcePath = (topic: Topic, parameters: Parameters) =>
  toPath(topic.path, topic.isWrapped ? { ...parameters, fields: undefined } : parameters)

/** How many records there are, where the answers say it or hold all of them. */
function toTotal(replies: readonly Reply[], found: number): number | undefined {
  const totals = replies.map(({ headers }) => headers.get('x-total-count'))
  if (totals.every((total) => total !== null)) return totals.reduce((sum, total) => sum + Number(total), 0)
  return replies.some((reply) => toCursor(reply) !== undefined) ? undefined : found
}

/** When the data is from: of each answer where they differ. */
function toAge(replies: readonly Reply[]): Json {
  const known = replies.map(toFacts)
  const asOf = known.map((one) => one.asOf)
  const stale = known.some((one) => one.stale === true) ? { stale: true } : {}
  return { asOf: asOf.every((one) => one === asOf[0]) ? asOf[0] : asOf, ...stale }
}

/** How the rest is found where an answer is not all there is. */
function toRest({ isCut, isEach, cursor }: { isCut: boolean; isEach: boolean; cursor: string | undefined }): string {
  if (isCut) return 'ask with fewer fields, a filter, or a smaller limit'
  if (isEach) return 'ask with one in of for what follows'
  return cursor === undefined ? 'ask with a larger limit' : 'ask again with cursor = next'
}

/** What came of a request, and whom it was about where they are asked for in turn. */
interface Came {
  readonly of: string | undefined
  readonly source: string
  readonly reply: Reply
  readonly records: readonly Json[]
}

/** The answer with as many rows as fit into it. */
function toData(call: QueryCall, isEach: boolean, came: readonly Came[], { failed, untold }: Missing) {
  const { fields, limit } = call.input
  const replies = came.map(({ reply }) => reply)
  const records = came.flatMap(({ of, records: list }) => list.slice(0, limit).map((record): Row => ({ of, record })))
  const all = toTotal(replies, came.flatMap(({ records: list }) => list).length)
  const cursors = replies.flatMap((reply) => toCursor(reply) ?? [])
  const next = isEach ? undefined : cursors[0]
  const hasMore = cursors.length > 0 || came.some(({ records: list }) => list.length > limit)
  const columns = fields ?? toPaths(records.map(({ record }) => record))
  const urls = came.map(({ source }) => call.source.base + source)
  const { made, shown } = cutToSize(records.length, (count, items): Json => {
    const rows = records.slice(0, count)
    const isCut = count < records.length
    const rest = toRest({ isCut, isEach, cursor: next })
    const toCells = ({ record }: Row) => columns.map((path) => shorten(valueAt(record, path), items))
    return {
      source: urls.length === 1 ? urls[0] : urls,
      ...toAge(replies),
      ...(isCut || hasMore ? { showing: `${count} of ${all ?? 'more'}; ${rest}` } : {}),
      ...(next === undefined || isCut ? {} : { next }),
      columns: isEach ? ['of', ...columns] : columns,
      rows: rows.map((row) => (isEach ? [row.of, ...toCells(row)] : toCells(row))),
      unknown: countUnknown(
        columns,
        rows.map(({ record }) => record),
      ),
      ...(failed.length > 0 ? { failed } : {}),
      ...(untold.length > 0 ? { untold } : {}),
    }
  })
  return { made, shown, all, found: records.length }
}

const UNTOLD: Reply = { text: '', headers: new Headers() }

/** Those of several that no record fits, and those of whom that could not be asked. */
interface Missing {
  readonly failed: readonly Failed[]
  readonly untold: readonly string[]
}

/** What is not seen among records may be on another page: it is asked for alone. */
async function findMissing(call: QueryCall, topic: Topic, came: readonly Came[]): Promise<Missing> {
  const { source, input: asked } = call
  const { of = [], filter, where, cursor } = asked
  // The first page told it.
  if (topic.takes !== 'several' || cursor !== undefined) return { failed: [], untold: [] }
  const names = came.flatMap(({ records }) => records.flatMap(({ _id, name }) => [_id, name]))
  const seen = new Set(names.map((name) => (typeof name === 'string' ? name.toLowerCase() : undefined)))
  const others = of.filter((one) => !seen.has(one.toLowerCase()))
  const askAny: Source['ask'] = async (path, signal) => {
    try {
      const reply = await source.ask(path, signal)
      if (toRecords(reply).length > 0) return reply
    } catch (error) {
      // Of whom nothing could be asked just now it is not known that there is none.
      const isUntold = error instanceof Refused && error.problem.code !== 'not_found' && !signal.aborted
      if (!isUntold) throw error
      return UNTOLD
    }
    throw new Refused({ code: 'not_found', detail: 'No record fits.' })
  }
  const toAny = (one: string) => ({ ...toOf([one]), ...where, filter, fields: '_id', limit: '1' })
  const paths = others.map((one) => ({ of: one, path: toAskedPath(topic, toAny(one)) }))
  const { answers, failed } = await askEach(call, paths, askAny)
  return { failed, untold: answers.flatMap(({ of: one, reply }) => (reply === UNTOLD ? [one] : [])) }
}

/** Why nothing came: of each, unless it is the same. */
function toMistake(failed: readonly Failed[]): Mistake {
  const whys = new Set(failed.map(({ why }) => why))
  return new Mistake(whys.size === 1 ? [...whys].join() : failed.map(({ of, why }) => `${of}: ${why}`).join(' '))
}

async function run(call: QueryCall): Promise<Told> {
  const { source, input: asked } = call
  const topic = await findTopic(source, asked.topic)
  checkArguments(topic, asked)
  const { of = [] } = asked
  const isEach = topic.takes === 'one' && of.length > 1
  const requests = (isEach ? of.map((one) => [one]) : [of]).map((group) => {
    const parameters = toParameters(topic, asked, group)
    const [one, ...others] = group
    return {
      of: others.length === 0 ? one : undefined,
      path: toAskedPath(topic, parameters),
      source: toSourcePath(topic, parameters),
    }
  })
  const { answers, failed } = await askEach(call, requests)
  if (answers.length === 0) throw toMistake(failed)
  const came = answers.map((answer): Came => ({ ...answer, records: toRecords(answer.reply) }))
  const missing = await findMissing(call, topic, came)
  const without = [...failed, ...missing.failed]
  const data = toData(call, isEach, came, { ...missing, failed: without })
  // What was cut for its size has a next page as well: one that begins where it was cut.
  if (data.shown < data.found && topic.has('cursor') && !isEach)
    return run({ ...call, input: { ...asked, limit: data.shown } })
  const line = `${data.shown} of ${data.all ?? 'more'} records of ${topic.name}, as of ${data.made.asOf ?? 'no time'}.`
  const said = without.length === 0 ? '' : ` Nothing of ${without.length} of the ${of.length} asked for: see failed.`
  const unsaid =
    missing.untold.length === 0 ? '' : ' Whether a record fits those in untold could not be asked: ask again.'
  return { line: line + said + unsaid, data: data.made }
}

export const queryTool = defineTool({
  name: 'query',
  description:
    'Records of any topic, sorted, filtered and cut: newest values of many tokens or DAOs, rankings, proposals, votes, trades, holdings, index members, sums by category. Numbers have 8 digits; `unknown` counts the nulls of each column.',
  input,
  call: run,
})
