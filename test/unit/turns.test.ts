import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { loadRegistry, RegistryError, toRegistry } from '../../shared/registry/registry.ts'
import { readFiles, SHIPPED } from '../../shared/registry/source.ts'
import { inTurns, mapInSteps, runToEnd, type Steps } from '../../shared/turns.ts'

/** Counts the turns of the event loop for other work during `work`. */
async function countTurns<T>(work: () => Promise<T>): Promise<{ result: T; turns: number }> {
  let [turns, isOver] = [0, false]
  const turn = async () => {
    while (!isOver) {
      await yieldToEventLoop()
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

describe('steps', () => {
  it('return the same result in inTurns() and runToEnd()', async () => {
    expect(runToEnd(threeSteps())).toBe('done')
    expect(await inTurns(threeSteps())).toBe('done')
  })

  it('yield to other work after each step in inTurns()', async () => {
    const { turns } = await countTurns(() => inTurns(threeSteps()))
    expect(turns).toBeGreaterThanOrEqual(2)
  })

  it('throw the same error in inTurns() and runToEnd()', async () => {
    const failing = function* (): Steps<never> {
      yield
      throw new Error('no more')
    }
    expect(() => runToEnd(failing())).toThrow('no more')
    await expect(inTurns(failing())).rejects.toThrow('no more')
  })

  it('map every value in order in mapInSteps()', () => {
    const values = Array.from({ length: 12_001 }, (_, index) => index)
    expect(runToEnd(mapInSteps(values, (value) => value * 2))).toEqual(values.map((value) => value * 2))
    expect([...mapInSteps(values, String)].length).toBe(2)
  })
})

describe('toRegistry', () => {
  it('builds the same registry as loadRegistry(), in turns', async () => {
    const { result, turns } = await countTurns(() => toRegistry(readFiles(SHIPPED)))
    expect(result).toEqual(loadRegistry())
    expect(turns).toBeGreaterThanOrEqual(15)
  })

  it('throws for any number of errors', async () => {
    const source = readFiles(SHIPPED)
    const { tokens } = source.files
    const same = Array.from({ length: 150_000 }, () => tokens.records[0] as (typeof tokens.records)[number])
    const files = { ...source.files, tokens: { ...tokens, records: same } }
    await expect(toRegistry({ ...source, files })).rejects.toThrow(RegistryError)
  })
})
