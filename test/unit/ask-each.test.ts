import { describe, expect, it } from 'vitest'
import { DataError } from '../../shared/errors.ts'
import { askEach } from '../../workers/providers/ask-each.ts'
import { silent } from '../support/silent.ts'

const entities = Array.from({ length: 20 }, (_, key) => ({ id: String(key), key, name: `entity ${key}` }))
const unavailable = new DataError('provider_unavailable', 'status 503')
const rejected = new DataError('provider_rejected', 'status 401')

/** Asks for all; `fails` names what each entity comes to, else it answers its key. */
async function ask(fails: (key: number) => Error | undefined, concurrency = 1) {
  const asked: number[] = []
  const outcome = askEach(
    entities,
    async ({ key }) => {
      asked.push(key)
      const error = fails(key)
      if (error) throw error
      return key
    },
    { concurrency, log: silent },
  )
  return { asked, outcome: await outcome.catch((error: unknown) => error) }
}

describe('askEach', () => {
  it('loses nobody to one that fails', async () => {
    const { outcome } = await ask((key) => (key % 3 === 0 ? unavailable : undefined))
    expect(outcome).toEqual(entities.map(({ key }) => key).filter((key) => key % 3 !== 0))
  })

  it('stops after three failures in a row and keeps what came', async () => {
    const { asked, outcome } = await ask((key) => (key >= 5 ? unavailable : undefined))
    expect(outcome).toEqual([0, 1, 2, 3, 4])
    expect(asked).toHaveLength(8)
  })

  it('stops at once when it is refused', async () => {
    const { asked, outcome } = await ask((key) => (key === 2 ? rejected : undefined))
    expect(outcome).toEqual([0, 1])
    expect(asked).toEqual([0, 1, 2])
  })

  it('throws the first failure when nothing came', async () => {
    expect((await ask(() => unavailable)).outcome).toBe(unavailable)
    expect(await ask(() => rejected)).toEqual({ asked: [0], outcome: rejected })
  })

  it('takes silence about everybody for trouble, and about somebody for an answer', async () => {
    const options = { concurrency: 2, log: silent }
    await expect(askEach(entities, async () => undefined, options)).rejects.toMatchObject({
      code: 'provider_unavailable',
    })
    const some = await askEach(entities, async ({ key }) => (key < 3 ? key : undefined), options)
    expect(some).toEqual([0, 1, 2])
    expect(await askEach([], async () => undefined, options)).toEqual([])
  })

  it('asks no more at once than it may', async () => {
    let open = 0
    let most = 0
    const answers = await askEach(
      entities,
      async ({ key }) => {
        open += 1
        most = Math.max(most, open)
        await new Promise(setImmediate)
        open -= 1
        return key
      },
      { concurrency: 4, log: silent },
    )
    expect(answers).toHaveLength(entities.length)
    expect(most).toBe(4)
  })

  it('lets a programming error through', async () => {
    const { asked, outcome } = await ask((key) => (key === 1 ? new TypeError('x') : undefined))
    expect(outcome).toBeInstanceOf(TypeError)
    expect(asked).toEqual([0, 1])
  })
})
