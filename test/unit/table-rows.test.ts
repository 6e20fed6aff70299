import { expect, it } from 'vitest'
import { priceRow } from '../../api/prices/points.ts'
import { toAnswer } from '../../api/series/series-answer.ts'

it('table rows begin with the members of their token, also if its name has braces and quotes', () => {
  const point = '{"timestamp":"2026-01-01T00:00:00.000Z","quote":{"USD":{"price":1}}}'
  const before = { id: 'a'.repeat(24), name: 'A}"{,', symbol: 'S' }
  const points = { toRecords: () => [Buffer.from(point)], asOf: 0 }
  const representation = { format: 'ndjson', hasAllFields: true, fields: [], toFileName: () => 'a.ndjson' }
  const { body } = toAnswer(points as never, { record: priceRow, cached: { before } } as never, representation as never)
  expect(JSON.parse(String(body))).toEqual({ ...before, ...JSON.parse(point) })
})
