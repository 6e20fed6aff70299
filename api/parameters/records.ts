import { z } from 'zod'
import { FORMAT_NAMES, FORMATS } from '../answers/formats.ts'
import type { QueryShape } from './parse.ts'

const MEDIA_TYPES = FORMAT_NAMES.map((name) => `\`${FORMATS[name].mediaType}\``).join(', ')

const format = z
  .enum(FORMAT_NAMES, `must be one of ${FORMAT_NAMES.join(', ')}`)
  .optional()
  .meta({
    description: `How the answer is written; without it \`Accept\` decides (${MEDIA_TYPES}), and JSON is the default. CSV, Parquet and Arrow have a column for each value, named after its members with underscores in between (\`financialData_price\`); lists inside a record are lists in Parquet and Arrow, JSON text in CSV. In CSV an unknown value is an empty field.`,
    examples: ['csv'],
  })

/** The parameters of every route with records. */
export function recordParameters(record: z.ZodObject): QueryShape {
  const names = Object.keys(record.shape) as [string, ...string[]]
  const fields = z
    .array(z.enum(names, `must be some of ${names.join(', ')}`))
    .optional()
    .meta({
      description:
        'Only these members of each record, in the order of the record: `fields=a,b` or repeated. Where JSON is one object with the records inside, for the other formats only.',
      examples: [names.slice(0, 2)],
    })
  return { fields, format }
}
