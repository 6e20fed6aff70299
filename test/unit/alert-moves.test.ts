import { expect, it } from 'vitest'
import { HOUR_MS } from '../../shared/intervals.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { toMoveResult } from '../../workers/alerts/conditions/series.ts'

const registry = loadRegistry()
const AT = Date.parse('2024-05-06T12:00:00Z')

/** Whether the Index moved by 50 % within an hour whose lowest value was 80 and highest 120, and the title of a message. */
function move(direction: 'up' | 'down' | 'any', value: number) {
  const what = { kind: 'move', series: 'index', percent: 50, within: HOUR_MS, direction } as const
  const result = toMoveResult({ what }, null, { at: AT, value, low: 80, high: 120 }, registry)
  const facts = result?.toFacts()
  return facts && [result?.holds, facts.before, facts.describe().title]
}

it.each([
  ['up', 120, [true, 80, 'Index +50.0 % within 1 h']],
  ['up', 119.9, [false, 80, 'Index +49.9 % within 1 h']],
  ['down', 60, [true, 120, 'Index -50.0 % within 1 h']],
  ['down', 60.1, [false, 120, 'Index -49.9 % within 1 h']],
  ['any', 60, [true, 120, 'Index -50.0 % within 1 h']],
  ['any', 124, [true, 80, 'Index +55.0 % within 1 h']],
] as const)('a move %s to %d is compared with the other end of the window', (direction, value, expected) => {
  expect(move(direction, value)).toEqual(expected)
})
