import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import { expect, it } from 'vitest'
import { createUnsent } from '../../api/serving/unsent.ts'

it('createUnsent limits the bytes held for slow clients, and closes the slowest one for others', () => {
  const create = (destroyed = false) => Object.assign(new EventEmitter(), { destroyed }) as unknown as ServerResponse
  const slow: ServerResponse[] = []
  const unsent = createUnsent({ closeSlowest: (among) => [...among].find((one) => slow.includes(one as never)) }, 100)
  const [first, second, third] = [create(), create(), create()]
  const body = Buffer.alloc(60)
  unsent.take(first, body)
  unsent.take(create(true), Buffer.alloc(60))
  unsent.take(second, Buffer.alloc(40))
  expect(() => unsent.take(third, Buffer.alloc(1))).toThrow(expect.objectContaining({ code: 'unavailable' }))
  // A client of the same body uses no additional bytes. The bytes are freed with the last client.
  const same = create()
  unsent.take(same, body)
  second.emit('close')
  unsent.take(third, Buffer.alloc(40))
  slow.push(first)
  expect(() => unsent.take(create(), Buffer.alloc(60))).toThrow(expect.objectContaining({ code: 'unavailable' }))
  slow.push(same)
  unsent.take(create(), Buffer.alloc(60))
  // Clients closed for another one are not counted again.
  first.emit('close')
  same.emit('close')
  expect(() => unsent.take(create(), Buffer.alloc(1))).toThrow(expect.objectContaining({ code: 'unavailable' }))
})
