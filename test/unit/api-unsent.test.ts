import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import { expect, it } from 'vitest'
import { createUnsent } from '../../api/serving/unsent.ts'

it('holds so many bytes for clients that do not read, and closes the slowest for others', () => {
  const create = (destroyed = false) => Object.assign(new EventEmitter(), { destroyed }) as unknown as ServerResponse
  const slow: ServerResponse[] = []
  const unsent = createUnsent({ closeSlowest: (among) => [...among].find((one) => slow.includes(one as never)) }, 100)
  const [first, second, third] = [create(), create(), create()]
  const body = Buffer.alloc(60)
  unsent.take(first, body)
  unsent.take(create(true), Buffer.alloc(60))
  unsent.take(second, Buffer.alloc(40))
  expect(() => unsent.take(third, Buffer.alloc(1))).toThrow(expect.objectContaining({ code: 'unavailable' }))
  // Who waits for the same bytes takes none.
  unsent.take(create(), body)
  second.emit('close')
  unsent.take(third, Buffer.alloc(40))
  slow.push(first)
  unsent.take(create(), Buffer.alloc(60))
  // Closed in favour of that one, it counts no second time.
  first.emit('close')
  expect(() => unsent.take(create(), Buffer.alloc(1))).toThrow(expect.objectContaining({ code: 'unavailable' }))
})
