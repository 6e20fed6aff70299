import { describe, expect, it } from 'vitest'
import { DataError } from '../../shared/errors.ts'
import type { Collector, Entity, Range } from '../../workers/job/define-job.ts'
import { collect } from '../../workers/run/collect.ts'
import { silent } from '../support/silent.ts'

const entity = (key: number): Entity => ({ id: String(key), key, name: `entity ${key}` })
const entities = [1, 2, 3, 4].map(entity)
const range: Range = { from: 0, to: 3_600_000, interval: '5m' }
const state = { get: async () => undefined, set: () => {} }
const check = (_provider: string, rows: readonly object[]) => ({ rows: [...rows], rejected: 0 })
const wanted = {
  check,
  state,
  entities,
  entityColumn: 'token',
  resumes: false,
  slot: 0,
  range: undefined,
  signal: new AbortController().signal,
}

/** A provider that answers for some entities and notes for whom it was asked. */
function provider(name: string, options: { covers?: number[]; answers?: number[]; fails?: DataError }) {
  const asked: number[][] = []
  const collector: Collector = {
    provider: name,
    covers: ({ key }) => options.covers?.includes(key) ?? true,
    collect: async (run) => {
      asked.push(run.entities.map(({ key }) => key))
      if (options.fails) throw options.fails
      return run.entities.filter(({ key }) => options.answers?.includes(key) ?? true).map(({ key }) => ({ token: key }))
    },
  }
  return { collector, asked }
}

const unavailable = new DataError('provider_unavailable', 'first: 503')
const rejected = new DataError('provider_rejected', 'second: 401')
const keys = (rows: object[]) => rows.map((row) => Reflect.get(row, 'token'))

describe('collect', () => {
  it('asks only the first provider when it answers for everyone', async () => {
    const [first, second] = [provider('first', {}), provider('second', {})]
    const collected = await collect([first.collector, second.collector], wanted, silent)
    expect(keys(collected.rows)).toEqual([1, 2, 3, 4])
    expect(second.asked).toEqual([])
    expect(collected.providers).toEqual(['first'])
  })

  it('asks the next one for whom the first does not cover or does not know', async () => {
    const [first, second] = [
      provider('first', { covers: [1, 2, 3], answers: [1, 2] }),
      provider('second', { answers: [3] }),
    ]
    const collected = await collect([first.collector, second.collector], wanted, silent)
    expect(first.asked).toEqual([[1, 2, 3]])
    expect(second.asked).toEqual([[3, 4]])
    expect(keys(collected.rows)).toEqual([1, 2, 3])
    expect(collected.uncovered).toBe(1)
    expect(collected.pending).toBeUndefined()
  })

  it('falls back to the next one when the first fails', async () => {
    const [first, second] = [provider('first', { fails: unavailable }), provider('second', {})]
    const collected = await collect([first.collector, second.collector], wanted, silent)
    expect(keys(collected.rows)).toEqual([1, 2, 3, 4])
    expect(collected.pending).toBeUndefined()
  })

  it('throws the failure that may pass when nobody answered, whoever it came from', async () => {
    const [first, second] = [provider('first', { fails: rejected }), provider('second', { fails: unavailable })]
    await expect(collect([first.collector, second.collector], wanted, silent)).rejects.toBe(unavailable)
    await expect(collect([first.collector], wanted, silent)).rejects.toBe(rejected)
  })

  it('takes no rows for an answer in a range, where a token may have no history', async () => {
    const [first, second] = [provider('first', { answers: [1] }), provider('second', {})]
    const collected = await collect([first.collector, second.collector], { ...wanted, range }, silent)
    expect(second.asked).toEqual([])
    expect(collected.uncovered).toBe(0)
  })

  it('leaves a part of a range pending when its provider was away', async () => {
    const [first, second] = [provider('first', { covers: [1, 2] }), provider('second', { fails: unavailable })]
    const collected = await collect([first.collector, second.collector], { ...wanted, range }, silent)
    expect(keys(collected.rows)).toEqual([1, 2])
    expect(collected.pending).toBe(unavailable)
  })

  it('tells a failure of a job that resumes, after the others have answered', async () => {
    const failing = provider('first', { fails: unavailable })
    const second = provider('second', { answers: [1] })
    expect((await collect([failing.collector, second.collector], wanted, silent)).pending).toBeUndefined()
    const resuming = { ...wanted, resumes: true }
    const collected = await collect([failing.collector, second.collector], resuming, silent)
    expect(keys(collected.rows)).toEqual([1])
    expect(collected.pending).toBe(unavailable)
  })

  it('asks the next one for rows that cannot be stored, and for all of an answer that cannot be trusted', async () => {
    const [first, second] = [provider('first', {}), provider('second', {})]
    const picky: typeof check = (name, rows) => {
      const good = rows.filter((row) => name === 'second' || Reflect.get(row, 'token') !== 2)
      return { rows: good, rejected: rows.length - good.length }
    }
    const collected = await collect([first.collector, second.collector], { ...wanted, check: picky }, silent)
    expect(second.asked).toEqual([[2]])
    expect(collected).toMatchObject({ rejected: 1, uncovered: 0 })
    const distrusting: typeof check = (name, rows) => {
      if (name === 'first') throw new DataError('rows_rejected', 'first: all wrong')
      return check(name, rows)
    }
    const fallenBack = await collect([first.collector, second.collector], { ...wanted, check: distrusting }, silent)
    expect(fallenBack.providers).toEqual(['second'])
    expect(keys(fallenBack.rows)).toEqual([1, 2, 3, 4])
  })

  it('remembers nothing of an answer that is thrown away', async () => {
    const notes: string[] = []
    const noting = (name: string): Collector => ({
      ...provider(name, {}).collector,
      collect: async (run) => {
        run.state.set(name, 'read')
        expect(await run.state.get(name)).toBe('read')
        return run.entities.map(({ key }) => ({ token: key }))
      },
    })
    const distrusting: typeof check = (name, rows) => {
      if (name === 'first') throw new DataError('rows_rejected', 'first: all wrong')
      return check(name, rows)
    }
    const noted = { ...state, set: (name: string) => void notes.push(name) }
    await collect([noting('first'), noting('second')], { ...wanted, state: noted, check: distrusting }, silent)
    expect(notes).toEqual(['second'])
  })

  it('keeps what came when the time of the job is over', async () => {
    const controller = new AbortController()
    const slow: Collector = {
      provider: 'slow',
      covers: () => true,
      collect: () => {
        controller.abort()
        return Promise.reject(controller.signal.reason)
      },
    }
    const [first, third] = [provider('first', { answers: [1] }), provider('third', {})]
    const all = [first.collector, slow, third.collector]
    const collected = await collect(all, { ...wanted, signal: controller.signal }, silent)
    expect(keys(collected.rows)).toEqual([1])
    expect(third.asked).toEqual([])
    const alone = collect([slow], { ...wanted, signal: new AbortController().signal }, silent)
    await expect(alone).rejects.toThrow()
  })

  it('is a failure that may pass when the time was over before anybody was asked', async () => {
    const first = provider('first', {})
    const late = collect([first.collector], { ...wanted, signal: AbortSignal.abort() }, silent)
    await expect(late).rejects.toMatchObject({ code: 'provider_unavailable' })
    expect(first.asked).toEqual([])
  })

  it('lets a programming error through', async () => {
    const broken: Collector = {
      provider: 'broken',
      covers: () => true,
      collect: () => Promise.reject(new TypeError('x')),
    }
    await expect(collect([broken, provider('second', {}).collector], wanted, silent)).rejects.toThrow(TypeError)
  })

  it('tells who was read, as far as the answers are kept', async () => {
    const noting = (fails?: DataError): Collector => ({
      provider: 'noting',
      covers: ({ key }) => (fails === undefined ? key > 2 : key <= 2),
      collect: async ({ entities: asked, noteRead }) => {
        noteRead(asked)
        if (fails) throw fails
        return []
      },
    })
    const collected = await collect([noting(unavailable), noting()], wanted, silent)
    expect(collected).toMatchObject({ rows: [], read: [3, 4] })
  })
})
