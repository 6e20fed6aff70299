import { z } from 'zod'
import { datasets } from '../../shared/datasets/list.ts'
import { timeValue } from '../../shared/record-values.ts'
import { mayBeEmpty } from '../parameters/kinds.ts'
import { defineRoute } from '../route/define-route.ts'

const names = datasets.map(({ name }) => name)
const [first, ...rest] = names

const selectedDatasets = z
  .array(z.enum([first as string, ...rest], `must be datasets: ${names.join(', ')}`))
  .optional()
  .meta({
    description: 'Only change events of these datasets, repeated or separated by commas; default: all.',
    examples: [['prices', 'index']],
  })

/** Clients that cannot set headers, such as polyfills of `EventSource`, send the id as one of these parameters. */
const lastEventId = mayBeEmpty(z.string().max(100, 'must have at most 100 characters'))
  .optional()
  .meta({
    description:
      'Id of the last event that the client received, if it cannot send the header `Last-Event-ID`, which wins.',
    examples: ['1767225600000-0'],
  })

const unknown = 'null if unknown: anything of the dataset may then have changed.'

const change = z
  .strictObject({
    dataset: z.string().describe('The dataset.'),
    asOf: timeValue.nullable().describe('Time of its newest value; null if unknown.'),
    entities: z.int().nullable().describe('Number of changed tokens or DAOs; null if unknown.'),
    from: timeValue.nullable().describe(`Start of the changed range of time; ${unknown}`),
    to: timeValue.nullable().describe(`End of the changed range, which it does not contain; ${unknown}`),
  })
  .meta({ id: 'ChangeEvent', description: 'That data of a dataset was stored.' })

const reset = z
  .strictObject({})
  .meta({ id: 'ResetEvent', description: 'That change events may be missing: everything may have changed.' })

export const streamRoute = defineRoute({
  operation: 'streamChanges',
  path: '/data/stream',
  tag: 'Service',
  summary: 'Stream of change events',
  description: `Server-sent events: one \`change\` as soon as data was stored, so that clients need not poll. Its \`id\` is the version of the change event, its data \`{dataset, asOf, entities, from, to}\`: the dataset, the time of its newest datum, how many tokens or DAOs it is about, and the range of times, from the start of a bucket of its cadence on and without \`to\` itself. What is null is not known: anything of the dataset may have changed then.

A client that comes back with \`Last-Event-ID\`, as every \`EventSource\` does, or with the parameter \`lastEventId\`, gets what it missed. Where that is too long ago or too much it gets one \`reset\`: everything may have changed. A comment comes every 15 seconds. A client that does not read is closed, and may come back.`,
  query: { datasets: selectedDatasets, lastEventId, 'Last-Event-ID': lastEventId },
  events: { change, reset },
  response: z.string().describe('Events as text, without an end.'),
  contentType: 'text/event-stream; charset=utf-8',
  datasets: [],
  volatile: true,
  connect: ({ connect, query }, context) =>
    connect(context, { datasets: query.datasets, lastEventId: query.lastEventId || query['Last-Event-ID'] }),
})
