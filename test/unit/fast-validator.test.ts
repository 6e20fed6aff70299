import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Dataset } from '../../shared/datasets/define-dataset.ts'
import { datasets } from '../../shared/datasets/list.ts'
import { tokenPriceRow } from '../../shared/datasets/token-prices.ts'
import { toFastValidator } from '../../workers/run/rows.ts'

const quote = {
  ...Object.fromEntries(Object.keys(tokenPriceRow.shape).map((name) => [name, 7.5])),
  token: 1,
  observed_at: '2024-02-29T00:00:00.000Z',
  is_latest: true,
}

/** Values of every type, at and near every bound of the row schemas. */
const VALUES = [
  null,
  undefined,
  true,
  '',
  '1',
  'x',
  '2024-02-29T00:00:00.000Z',
  '2024-02-29T00:00:00Z',
  '2023-02-29T00:00:00Z',
  '2024-01-01',
  ...[0, -0, 1, -1, 0.5, -100, -100.01, 100, 101, 7.5, 2 ** 53 - 1, 2 ** 53, 1e308],
  ...[Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY],
  1n,
  [],
  {},
  new Date(0),
]

describe('toFastValidator', () => {
  it.each(datasets.map((dataset) => [dataset.name, (dataset as unknown as Dataset).row] as const))(
    'accepts a row of %s only if its schema returns it unchanged',
    (_, schema) => {
      const check = toFastValidator(schema)
      const shape = schema instanceof z.ZodObject ? Object.keys(schema.shape) : []
      const rows = [quote, ...shape.flatMap(() => VALUES.map((value) => toRow(shape, value)))]
      for (const row of rows.filter(check)) expect(schema.parse(row)).toStrictEqual(row)
    },
  )

  it('accepts exactly the quotes that their schema returns unchanged', () => {
    const check = toFastValidator(tokenPriceRow)
    const rows = Object.keys(quote).flatMap((name) => VALUES.map((value) => ({ ...quote, [name]: value })))
    const isRemaining = (row: object) => {
      const { success, data } = tokenPriceRow.safeParse(row)
      return success && Object.entries(row).every(([name, value]) => Object.is(Reflect.get(data, name), value))
    }
    expect(rows.map(check)).toEqual(rows.map(isRemaining))
    expect(rows.filter(check).length).toBeGreaterThan(100)
    expect(rows.filter((row) => !check(row)).length).toBeGreaterThan(100)
  })

  it('rejects a row with an additional or missing member', () => {
    const check = toFastValidator(tokenPriceRow)
    const { tvl: _, ...without } = quote as Record<string, unknown>
    expect([quote, { ...quote, more: 1 }, without, { ...without, more: 1 }].map(check)).toEqual([
      true,
      false,
      false,
      false,
    ])
  })

  it('rejects rows of schemas with unsupported checks', () => {
    const row = { a: 1 }
    expect(toFastValidator(z.strictObject({ a: z.number() }))(row)).toBe(true)
    expect(toFastValidator(z.object({ a: z.number() }))(row)).toBe(false)
    expect(toFastValidator(z.strictObject({ a: z.number() }).refine(({ a }) => a > 1))(row)).toBe(false)
    expect(toFastValidator(z.strictObject({ a: z.number().multipleOf(2) }))(row)).toBe(false)
    expect(toFastValidator(z.strictObject({ a: z.number().transform(String) }))(row)).toBe(false)
    expect(toFastValidator(z.strictObject({ a: z.int().max(0) }))(row)).toBe(false)
    expect(toFastValidator(z.strictObject({ a: z.number().lt(1) }))(row)).toBe(false)
  })
})

const toRow = (names: readonly string[], value: unknown) => Object.fromEntries(names.map((name) => [name, value]))
