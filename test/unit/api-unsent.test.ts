import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import { expect, it } from 'vitest'
import { createUnsent } from '../../api/serving/unsent.ts'

it('holds so many bytes for clients that do not read, and closes the slowest for others', () => {
  const create = (destroyed = false) => Object.assign(new EventEmitter(), { destroyed }) as unknown as ServerResponse
  const slow: ServerResponse[] = []
  const unsent = createUnsent({ closeSlowest: (among) => [...among].find((one) => slow.includes(one as never)) }, 100)
  const [first, second, third] = [create(), create(), create()]
  unsent.take(first, 60)
  unsent.take(create(true), 60)
  unsent.take(second, 40)
  expect(() => unsent.take(third, 1)).toThrow(expect.objectContaining({ code: 'unavailable' }))
  second.emit('close')
  unsent.take(third, 40)
  slow.push(first)
  unsent.take(create(), 60)
  // Closed in favour of that one, it counts no second time.
  first.emit('close')
  expect(() => unsent.take(create(), 1)).toThrow(expect.objectContaining({ code: 'unavailable' }))
})
