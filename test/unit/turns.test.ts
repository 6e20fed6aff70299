import { setImmediate as others } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { loadRegistry, RegistryError, toRegistry } from '../../shared/registry/registry.ts'
import { readFiles, SHIPPED } from '../../shared/registry/source.ts'
import { atOnce, inTurns, mapInSteps, type Steps } from '../../shared/turns.ts'

/** Counts the turns that others have while something is done. */
async function countTurns<T>(work: () => Promise<T>): Promise<{ result: T; turns: number }> {
  let [turns, isOver] = [0, false]
  const turn = async () => {
    while (!isOver) {
      await others()
      turns += 1
    }
  }
  const counting = turn()
  const result = await work()
  isOver = true
  await counting
  return { result, turns }
}

function* threeSteps(): Steps<string> {
  yield
  yield
  return 'done'
}

describe('work in steps', () => {
  it('has one result, whichever way it is done', async () => {
    expect(atOnce(threeSteps())).toBe('done')
    expect(await inTurns(threeSteps())).toBe('done')
  })

  it('leaves others their turn after each step', async () => {
    const { turns } = await countTurns(() => inTurns(threeSteps()))
    expect(turns).toBeGreaterThanOrEqual(2)
  })

  it('fails as it would at once', async () => {
    const failing = function* (): Steps<never> {
      yield
      throw new Error('no more')
    }
    expect(() => atOnce(failing())).toThrow('no more')
    await expect(inTurns(failing())).rejects.toThrow('no more')
  })

  it('maps every value, in its order', () => {
    const values = Array.from({ length: 12_001 }, (_, index) => index)
    expect(atOnce(mapInSteps(values, (value) => value * 2))).toEqual(values.map((value) => value * 2))
    expect([...mapInSteps(values, String)].length).toBe(2)
  })
})

describe('a registry', () => {
  it('is made of its records in turns as at once', async () => {
    const { result, turns } = await countTurns(() => toRegistry(readFiles(SHIPPED)))
    expect(result).toEqual(loadRegistry())
    expect(turns).toBeGreaterThanOrEqual(15)
  })

  it('is refused for its mistakes, however many they are', async () => {
    const source = readFiles(SHIPPED)
    const { tokens } = source.files
    const same = Array.from({ length: 150_000 }, () => tokens.records[0] as (typeof tokens.records)[number])
    const files = { ...source.files, tokens: { ...tokens, records: same } }
    await expect(toRegistry({ ...source, files })).rejects.toThrow(RegistryError)
  })
})
