import { z } from 'zod'
import { columnTypes } from '../../shared/record-values.ts'
import { FORMATS, toColumns } from '../formats/formats.ts'
import type { Route } from '../route/define-route.ts'
import type { TableColumn } from './shape.ts'

/** The type of a column's values. CSV has lists and values of several types as JSON text. */
function toType(schema: z.ZodType): TableColumn['type'] {
  const stored = columnTypes.get(schema)?.type
  if (stored?.startsWith('DateTime')) return 'time'
  if (stored?.startsWith('UInt')) return 'integer'
  if (schema instanceof z.ZodArray || schema instanceof z.ZodUnion || schema instanceof z.ZodRecord) return 'json'
  if (schema instanceof z.ZodBoolean) return 'boolean'
  if (schema instanceof z.ZodNumber) return schema.format === null ? 'number' : 'integer'
  return 'string'
}

/** The columns of a route's tables in CSV, also those that parameters add, with the types of their values. */
export function toTableColumns({ record, recordWith }: Pick<Route, 'record' | 'recordWith'>): readonly TableColumn[] {
  const widest = recordWith?.record ?? record
  if (widest === undefined) return []
  return toColumns(widest, Object.keys(widest.shape), FORMATS.csv).map(({ name, schema, isNullable }) => ({
    name,
    type: toType(schema),
    nullable: isNullable,
  }))
}
