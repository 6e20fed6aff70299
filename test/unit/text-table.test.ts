import { expect, it } from 'vitest'
import { toTable } from '../../workers/terminal/text-table.ts'

it('toTable sizes columns by their widest cell, with 200,000 rows', () => {
  const table = toTable(['n', 'name'], [...Array.from({ length: 200_000 }, () => ['1', 'a']), ['1000', 'b']])
  expect(table.split('\n').slice(0, 2)).toEqual(['n     name', '1     a'])
})
