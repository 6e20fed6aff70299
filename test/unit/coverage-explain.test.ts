import { describe, expect, it } from 'vitest'
import { isGap } from '../../shared/coverage-gap.ts'
import { type EntityCoverage, explain } from '../../shared/ledger/explain.ts'
import type { Note, Report } from '../../shared/ledger/ledger.ts'
import { countCases, SEED } from '../support/cases.ts'

const STEP = 3_600_000
const WITHIN = { first: 1000, last: 1199 }
const SEEDS = Array.from({ length: countCases(100) }, (_, at) => SEED * 1_000 + at)

/** Pseudo-random numbers for a seed. */
function createRandom(seed: number) {
  let state = seed * 2_654_435_761
  return (below: number) => {
    state = (Math.imul(state ^ (state >>> 15), 2_246_822_519) + 0x9e3779b9) >>> 0
    return (state >>> 8) % below
  }
}

function toCoverage(seed: number): { existing: EntityCoverage; due: number } {
  const random = createRandom(seed)
  const toSpan = () => {
    const first = 980 + random(230)
    return { first, last: first + random(40) }
  }
  const many = <T>(most: number, make: () => T) => Array.from({ length: random(most) }, make)
  const pick = <T>(...items: T[]) => items[random(items.length)] as T
  const reports = many(12, (): Report => {
    const state = pick<'stored' | 'nothing'>('stored', 'stored', 'nothing')
    return { entity: 1, state, provider: pick('a', 'b'), seconds: pick(3600, 3600, 43_200, 86_400), ...toSpan() }
  })
  const notes = many(5, (): Note => {
    const { first, last } = toSpan()
    const from = first * STEP - random(2) * 1000
    const rest = { entity: 1, queueClass: pick<'live' | 'history'>('live', 'history'), since: 0, tries: 1, nextTry: 0 }
    const state = pick<Note['state']>('coarser', 'failed', 'unserved', 'pending', 'missed')
    return { ...rest, from, to: (last + 1) * STEP, state, provider: 'c', reason: `note ${random(3)}` }
  })
  return { existing: { expected: many(3, toSpan), reports, notes }, due: 1100 + random(150) }
}

/** Returns the state of a single bucket, in plain code. */
function toStateOf({ expected: required, reports, notes }: EntityCoverage, bucket: number, due: number): string {
  const has = (one: { first: number; last: number }) => one.first <= bucket && one.last >= bucket
  const here = reports.filter(has)
  const stored = here.filter(({ state }) => state === 'stored').map(({ seconds }) => seconds)
  if (stored.length > 0) return Math.min(...stored) > 3600 ? 'coarser' : 'covered'
  if (here.length > 0) return 'nothing'
  const isAbout = ({ from, to, state }: Note) => state !== 'coarser' && from <= bucket * STEP && bucket * STEP < to
  const note = notes.find(isAbout)
  if (note !== undefined) return note.state
  return bucket >= due || required.some(has) ? 'pending' : 'unserved'
}

describe('explain', () => {
  it.each(SEEDS)('returns ranges without gaps or overlaps, with the state of each bucket: seed %d', (seed) => {
    const { existing, due } = toCoverage(seed)
    const stretches = explain({ cadence: '1h' }, existing, WITHIN, due)
    let next = WITHIN.first
    for (const { first, last, state, provider, seconds, reason } of stretches) {
      expect(first).toBe(next)
      expect(last).toBeGreaterThanOrEqual(first)
      for (let bucket = first; bucket <= last; bucket++)
        expect([bucket, state]).toEqual([bucket, toStateOf(existing, bucket, due)])
      const isStored = state === 'covered' || state === 'coarser' || state === 'nothing'
      expect(isStored ? [typeof provider, typeof seconds] : [typeof reason, seconds]).toEqual(
        isStored ? ['string', 'number'] : ['string', null],
      )
      next = last + 1
    }
    expect(next).toBe(WITHIN.last + 1)
  })

  it('returns "ended" after the end of the entity regardless of notes, and keeps stored ranges', () => {
    const [day, hours] = [Date.parse('2025-05-19T00:00:00Z'), 24]
    const begin = day / STEP - hours
    const span = (from: number, to: number) => ({ first: begin + from, last: begin + to - 1 })
    const report = { entity: 1, state: 'stored', provider: 'a', seconds: 3600 } as const
    const failed = {
      entity: 1,
      queueClass: 'live',
      state: 'failed',
      provider: 'b',
      since: 0,
      tries: 1,
      nextTry: 0,
    } as const
    const existing: EntityCoverage = {
      expected: [span(0, hours)],
      reports: [
        { ...report, ...span(0, 4) },
        { ...report, ...span(30, 32) },
      ],
      notes: [{ ...failed, from: (begin + 10) * STEP, to: (begin + 1000) * STEP, reason: 'HTTP 404' }],
      until: day,
    }
    const states = explain({ cadence: '1h' }, existing, span(0, 48), begin + 40)
    expect(states.map(({ first, last, state, reason }) => [first - begin, last + 1 - begin, state, reason])).toEqual([
      [0, 4, 'covered', null],
      [4, 10, 'pending', 'it is going to be collected'],
      [10, 24, 'failed', 'HTTP 404'],
      [24, 30, 'unserved', 'ended on 2025-05-19'],
      [30, 32, 'covered', null],
      [32, 48, 'unserved', 'ended on 2025-05-19'],
    ])
  })

  it('explains a missing bucket by its older failure if the newest note is about values left out around it', () => {
    const note = { entity: 1, from: 0, to: 10 * STEP, provider: 'a', since: 7, tries: 1, nextTry: 0 }
    const notes: Note[] = [
      { ...note, queueClass: 'live', state: 'coarser', reason: '1 left out' },
      { ...note, queueClass: 'history', state: 'failed', reason: 'HTTP 500' },
    ]
    const report = { entity: 1, state: 'stored', provider: 'a', seconds: 3600, first: 0, last: 4 } as const
    const coverage = { expected: [{ first: 0, last: 9 }], reports: [report], notes }
    const states = explain({ cadence: '1h' }, coverage, { first: 0, last: 9 }, 20)
    expect(states).toMatchObject([
      { first: 0, last: 4, state: 'covered', reason: '1 left out' },
      { first: 5, last: 9, state: 'failed', reason: 'HTTP 500', since: 7 },
    ])
  })

  it.each([
    [
      'a back-fill if the dataset has history',
      { hasHistory: true, resumes: true } as const,
      /^it was not requested: a back-fill/,
    ],
    ['the first slot if it reads all past events', { resumes: true } as const, /^before the first slot/],
    ['no provider otherwise', {}, /no provider has its history$/],
  ])('suggests for unrequested buckets %s', (_, dataset, reason) => {
    const existing = { expected: [], reports: [], notes: [] }
    const [states] = explain({ cadence: '1d', ...dataset }, existing, { first: 0, last: 9 }, 20)
    expect(states).toMatchObject({ state: 'unserved', reason: expect.stringMatching(reason) })
  })

  it('reports no gap for a bucket that is not due, if a range job found nothing there yet', () => {
    const note = {
      entity: 1,
      queueClass: 'history',
      state: 'pending',
      provider: 'a',
      since: 0,
      tries: 1,
      nextTry: 0,
    } as const
    const notes = [{ ...note, from: 0, to: 10 * STEP, reason: 'a has nothing there yet' }]
    const states = explain({ cadence: '1h' }, { expected: [], reports: [], notes }, { first: 0, last: 9 }, 8)
    expect(states.map(({ first, last, reason }) => [first, last, reason])).toEqual([
      [0, 7, 'a has nothing there yet'],
      [8, 9, 'not due yet'],
    ])
    expect(states.map(isGap)).toEqual([true, false])
  })

  it('handles 50,000 runs in linear time', () => {
    const reports = Array.from({ length: 50_000 }, (_, at): Report => {
      const [state, seconds] = at % 2 === 0 ? (['stored', 300] as const) : (['nothing', 300] as const)
      return { entity: 1, state, provider: 'a', seconds, first: at, last: at }
    })
    const before = performance.now()
    expect(
      explain({ cadence: '5m' }, { expected: [], reports, notes: [] }, { first: 0, last: 49_999 }, 0),
    ).toHaveLength(50_000)
    // A quadratic algorithm takes a minute.
    expect(performance.now() - before).toBeLessThan(5_000)
  })
})
