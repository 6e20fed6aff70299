import { z } from 'zod'
import { isGap } from '../../../shared/coverage-gap.ts'
import { nearestWord } from '../../parameters/kinds.ts'
import { type Call, defineTool, type ToolAnswer } from '../define-tool.ts'
import { Mistake } from '../mistake.ts'
import { toPath } from '../requests.ts'
import { cutToSize, type Json, shorten } from '../table.ts'

const input = z.strictObject({
  dataset: z.string().max(40).optional().describe('Such as prices.'),
  id: z.string().max(40).optional().describe('Only of this token or DAO.'),
  start: z.string().optional(),
  end: z.string().optional().describe('Default: last 30 days.'),
})

type StatusCall = Call<z.output<typeof input>>

/** A range of `/data/status/coverage`. */
type Stretch = Json & Parameters<typeof isGap>[0]

const COLUMNS = ['dataset', 'state', 'complete', 'lastUpdated', 'collectedEvery', 'earliest', 'entities'] as const

async function readStatus({ source, signal }: StatusCall) {
  const { text } = await source.request('/data/status', signal)
  return JSON.parse(text) as { readonly mode: string; readonly upstream: string; readonly datasets: readonly Json[] }
}

/** Notes and failures of datasets, in addition to their numbers. */
const toNotes = (datasets: readonly Json[]) =>
  datasets.flatMap(({ dataset, note, failing }) => {
    const fails = failing as readonly Json[]
    if (note === undefined && fails.length === 0) return []
    return [{ dataset, ...(note === undefined ? {} : { note }), ...(fails.length === 0 ? {} : { failing: fails }) }]
  })

async function readAll(call: StatusCall): Promise<ToolAnswer> {
  const { mode, upstream, datasets } = await readStatus(call)
  const { answer } = cutToSize(datasets.length, (_, items) => ({
    source: `${call.source.base}/data/status`,
    asOf: new Date(call.source.now()).toISOString(),
    mode,
    upstream,
    columns: COLUMNS,
    rows: datasets.map((one) => COLUMNS.map((name) => shorten(one[name === 'collectedEvery' ? 'cadence' : name], 0))),
    notes: shorten(toNotes(datasets), Math.max(items, 5)),
  }))
  const late = datasets.filter(({ state }) => state !== 'fresh').map(({ dataset, state }) => `${dataset} ${state}`)
  const said = late.length === 0 ? 'All are fresh.' : `Not fresh: ${late.join(', ')}.`
  return { summary: `${datasets.length} datasets. ${said}`, data: answer }
}

async function readMissing(call: StatusCall, dataset: string): Promise<ToolAnswer> {
  const {
    source,
    signal,
    input: { id, start, end },
  } = call
  const { datasets } = await readStatus(call)
  const status = datasets.find((one) => one.dataset === dataset)
  if (status === undefined) {
    const names = datasets.map((one) => String(one.dataset))
    const near = nearestWord(dataset, names)
    const hint = near === undefined ? '' : ` Did you mean "${near}"?`
    throw new Mistake(`There is no dataset "${dataset}".${hint} Datasets: ${names.join(', ')}.`)
  }
  const path = toPath('/data/status/coverage', { dataset, id, start, end })
  const ranges = JSON.parse((await source.request(path, signal)).text) as readonly Stretch[]
  const missing = ranges.filter(isGap)
  const { answer, shown } = cutToSize(missing.length, (count) => ({
    source: source.base + path,
    asOf: new Date(source.now()).toISOString(),
    status: shorten(status, 5),
    ...(count < missing.length
      ? { showing: `${count} of ${missing.length} ranges; use an id or a shorter range` }
      : {}),
    missing: missing.slice(0, count).map((range) => shorten(range, 0)),
  }))
  return { summary: `${dataset}: ${shown} of ${missing.length} ranges that are missing or coarser.`, data: answer }
}

export const statusTool = defineTool({
  name: 'status',
  title: 'Check freshness',
  description:
    'How fresh (fresh, late, stale, empty) and complete (0 to 1) each dataset is, which providers fail, whether data is simulated (mode demo). With a dataset: missing or coarser ranges, and why.',
  input,
  output: { rows: z.array(z.unknown()).optional(), missing: z.array(z.unknown()).optional() },
  call: (call) => (call.input.dataset === undefined ? readAll(call) : readMissing(call, call.input.dataset)),
})
