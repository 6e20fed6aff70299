import { setImmediate } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { createTurns } from '../../api/admission/turns.ts'

it('gives each client a limited number of tasks in a turn of the event loop, in their order', async () => {
  const turns = createTurns(2)
  const done: string[] = []
  const take = (client: string, name: string) => turns.take(client, () => void done.push(name))
  for (let n = 0; n < 5; n += 1) take('flood', `flood ${n}`)
  take('other', 'other')
  expect(done).toEqual(['flood 0', 'flood 1', 'other'])
  await setImmediate()
  expect(done.slice(3)).toEqual(['flood 2', 'flood 3'])
  take('flood', 'flood 5')
  take('other', 'again')
  expect(done.slice(5)).toEqual(['again'])
  await setImmediate()
  expect(done.slice(6)).toEqual(['flood 4', 'flood 5'])
  await setImmediate()
  take('flood', 'later')
  expect(done.at(-1)).toBe('later')
})
