import { z } from 'zod'
import { datasets } from '../../../shared/datasets/list.ts'
import { nearestWord } from '../../parameters/kinds.ts'
import { defineTool } from '../define-tool.ts'
import { Mistake } from '../mistake.ts'
import { resolveExact, toOf, toPath } from '../requests.ts'
import { cutToSize, type Json, shorten } from '../table.ts'

/** The answer of `/data/provenance`, as far as the tool reads it. */
interface Provenance extends Json {
  readonly provider: string | null
  readonly observedAt: string
  readonly answers: readonly Json[]
  readonly computedFrom: readonly Json[]
  readonly more: number
  readonly corrections: readonly Json[]
}

/** The list with the names of the dataset's entities. */
const LISTS: Readonly<Record<string, string>> = { token: '/data/tokens', dao: '/data/daos' }

function findDataset(name: string) {
  const found = datasets.find((dataset) => dataset.name === name)
  if (found !== undefined) return found
  const names = datasets.map((dataset) => dataset.name)
  const near = nearestWord(name, names)
  const hint = near === undefined ? '' : ` Did you mean "${near}"?`
  throw new Mistake(`There is no dataset "${name}".${hint} Datasets: ${names.join(', ')}.`)
}

export const traceTool = defineTool({
  name: 'trace',
  title: 'Trace a value',
  description: 'Origin of a stored value: provider, its requests and answers, inputs of a computed one, corrections.',
  input: z.strictObject({
    dataset: z.string().max(40).describe('One of status.'),
    of: z.string().max(200).optional().describe('Its token or DAO.'),
    at: z.string().max(40).optional().describe('Newest until then.'),
  }),
  output: { answers: z.array(z.unknown()), computedFrom: z.array(z.unknown()) },
  call: async ({ source, input: { dataset, of, at }, signal }) => {
    const list = LISTS[findDataset(dataset).series.entity ?? '']
    const named = of === undefined ? [] : [of]
    const ids = of === undefined || list === undefined ? [] : (await resolveExact({ source, signal }, list, named))(of)
    const path = toPath('/data/provenance', { dataset, ...toOf(ids.length === 1 ? ids : named), at })
    const found = JSON.parse((await source.request(path, signal)).text) as Provenance
    const { answers, computedFrom, more, corrections, ...value } = found
    const { answer } = cutToSize(Math.max(answers.length, computedFrom.length, corrections.length), (rows, items) => ({
      source: source.base + path,
      asOf: found.observedAt,
      ...(shorten(value, items) as Json),
      answers: answers.slice(0, rows),
      computedFrom: shorten(computedFrom.slice(0, rows), items),
      more: more + Math.max(0, computedFrom.length - rows),
      corrections: corrections.slice(-rows).map((one) => shorten(one, items)),
      ...(rows < Math.max(answers.length, corrections.length)
        ? { showing: `${rows} answers and corrections of ${answers.length} and ${corrections.length}` }
        : {}),
    }))
    const from =
      computedFrom.length > 0
        ? `computed from ${computedFrom.length + more} values`
        : `from ${found.provider ?? 'an unrecorded provider'}`
    return { summary: `${dataset} of ${found.observedAt}: ${from}, ${corrections.length} corrections.`, data: answer }
  },
})
