import { describe, expect, it } from 'vitest'
import { toBucketTime } from '../../shared/buckets.ts'
import { END_OF_TIME, HOUR_MS } from '../../shared/intervals.ts'
import type { Note, ProviderRows } from '../../shared/ledger/ledger.ts'
import { toNotes, toReports } from '../../shared/ledger/record.ts'
import type { JobPayload } from '../../shared/queue/queues.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import type { Job } from '../../workers/job/define-job.ts'
import prices from '../../workers/jobs/prices.ts'
import tvl from '../../workers/jobs/tvl.ts'
import { createAnswers } from '../../workers/run/collect.ts'

const NOW = Date.parse('2024-05-06T07:02:00Z')
const registry = loadRegistry()

/** Returns the reports and notes of a range job about its first entity, whose rows are at `times`. */
function reportsOf(
  job: Job,
  range: { from: string; to: string; interval: '5m' | '1d' | '7d' },
  input: ProviderRows,
  until?: string,
) {
  const [first] = job.entities(registry)
  if (first === undefined) throw new Error(`${job.name} is about nobody`)
  const entity = until === undefined ? first : { ...first, until: Date.parse(until) }
  const payload = { kind: 'range', ...range, from: Date.parse(range.from), to: Date.parse(range.to) } as const
  const answers = createAnswers([entity], true)
  const withRows = new Set([entity.key])
  answers.answered([entity], input.provider, { withRows, read: new Set(), refused: new Map(), putOff: new Set() })
  const reported = { dataset: job.dataset, payload, now: NOW, results: [input], answers: answers.all() }
  const reports = toReports(reported)
  const time = (bucket: number) => new Date(toBucketTime(bucket, job.dataset.cadence)).toISOString().slice(0, 16)
  return {
    reports: reports.map(({ state, seconds, first, last }) => [state, seconds, time(first), time(last + 1)]),
    notes: toNotes({ ...reported, reports, before: [] }).map(({ state, from, to }) => [
      state,
      new Date(from).toISOString().slice(0, 16),
      new Date(to).toISOString().slice(0, 16),
    ]),
  }
}

const every = (stepMs: number, from: string, to: string) =>
  Array.from({ length: (Date.parse(to) - Date.parse(from)) / stepMs }, (_, at) => Date.parse(from) + at * stepMs)

describe('range with older prices at a longer step', () => {
  const token = prices.entities(registry)[0]?.key
  const range = { from: '2024-05-05T00:00:00Z', to: '2024-05-06T07:00:00Z', interval: '5m' } as const
  const fine = '2024-05-06T00:00:00Z'
  const hours = every(HOUR_MS, range.from, fine).filter((at) => ![5, 6, 7].includes(new Date(at).getUTCHours()))
  const rows = [...hours, ...every(300_000, fine, '2024-05-06T06:50:00Z')].map((at) => ({
    token,
    observed_at: new Date(at).toISOString(),
  }))
  const steps = [{ from: Date.parse(range.from), to: Date.parse(fine), seconds: 3600 }]
  const coverageReports = reportsOf(prices, range, { provider: 'coingecko', rows, read: [], steps })

  it('is reported with the step of each part, and gaps are empty at that step only', () => {
    expect(coverageReports.reports).toEqual([
      ['stored', 3600, '2024-05-05T00:00', '2024-05-05T05:00'],
      ['stored', 3600, '2024-05-05T08:00', '2024-05-06T00:00'],
      ['stored', 300, '2024-05-06T00:00', '2024-05-06T06:50'],
      ['nothing', 3600, '2024-05-05T05:00', '2024-05-05T08:00'],
    ])
  })

  it('is noted as coarser, with the newest buckets pending', () => {
    expect(coverageReports.notes).toEqual([
      ['coarser', '2024-05-05T00:00', '2024-05-06T00:00'],
      ['pending', '2024-05-06T06:50', '2024-05-06T07:00'],
    ])
  })
})

it('toReports does not report an unfinished day as empty', () => {
  const dao = tvl.entities(registry)[0]?.key
  const rows = [{ dao, [tvl.dataset.series.time]: '2024-05-05T00:00:00Z' }]
  const range = { from: '2024-05-03T00:00:00Z', to: '2024-05-07T00:00:00Z', interval: '1d' } as const
  const coverageReports = reportsOf(tvl, range, { provider: 'defillama', rows, read: [], steps: [] })
  expect(coverageReports.reports).toEqual([
    ['stored', 86_400, '2024-05-05T00:00', '2024-05-06T00:00'],
    ['nothing', 86_400, '2024-05-03T00:00', '2024-05-04T00:00'],
  ])
  expect(coverageReports.notes).toEqual([['pending', '2024-05-04T00:00', '2024-05-06T07:00']])
})

it('toReports starts weeks on Mondays, also unfinished ones', () => {
  const token = prices.entities(registry)[0]?.key
  const rows = ['2024-04-01', '2024-04-08'].map((day) => ({ token, observed_at: `${day}T00:00:00Z` }))
  const range = { from: '2024-04-01T00:00:00Z', to: '2024-04-29T00:00:00Z', interval: '7d' } as const
  const coverageReports = reportsOf(prices, range, { provider: 'coinmarketcap', rows, read: [], steps: [] })
  expect(coverageReports.reports).toEqual([
    ['stored', 604_800, '2024-04-01T00:00', '2024-04-15T00:00'],
    ['nothing', 604_800, '2024-04-15T00:00', '2024-04-22T00:00'],
  ])
})

describe('stored buckets of which values were left out', () => {
  const [token] = prices.entities(registry)
  if (token === undefined) throw new Error('a token is needed')
  const omitted = new Map([[token.key, { count: 1, reason: 'coinmarketcap: market_cap: Too big' }]])
  const toAnswers = (isRange: boolean) => {
    const answers = createAnswers([token], isRange)
    const said = {
      withRows: new Set([token.key]),
      read: new Set<number>(),
      refused: new Map(),
      putOff: new Set<number>(),
    }
    answers.answered([token], 'coinmarketcap', { ...said, omitted })
    return answers
  }
  const noteOf = (payload: JobPayload, times: readonly string[], before: readonly Note[] = []) => {
    const rows = times.map((observed_at) => ({ token: token.key, observed_at }))
    const input = [{ provider: 'coinmarketcap', rows, read: [], steps: [] }]
    const answers = toAnswers(payload.kind === 'range')
    const run = { dataset: prices.dataset, payload, now: NOW, results: input, answers: answers.all() }
    return toNotes({ ...run, reports: toReports(run), before })
  }
  const reason = '1 left out, coinmarketcap: market_cap: Too big'
  const slot = Date.parse('2024-05-06T06:55:00Z')
  const at = (time: string) => Date.parse(`2024-05-06T${time}Z`)

  it('have a note with the reason, for a slot and for a range', () => {
    const [ofSlot, ...rest] = noteOf({ kind: 'slot', slot }, ['2024-05-06T06:52:00Z'])
    expect(rest).toEqual([])
    expect(ofSlot).toMatchObject({ queueClass: 'live', state: 'coarser', reason })
    const range = { kind: 'range', from: at('06:00:00'), to: at('06:10:00'), interval: '5m' } as const
    expect(noteOf(range, ['2024-05-06T06:02:00Z', '2024-05-06T06:07:00Z'])).toMatchObject([
      { queueClass: 'live', state: 'coarser', reason, from: at('06:00:00'), to: at('06:10:00') },
    ])
  })

  it('continue the note of the bucket before, so that a value that stays implausible is one note', () => {
    const [first] = noteOf({ kind: 'slot', slot }, ['2024-05-06T06:52:00Z'])
    if (first === undefined) throw new Error('a note is needed')
    const [next, ...rest] = noteOf({ kind: 'slot', slot: slot + 300_000 }, ['2024-05-06T06:57:00Z'], [first])
    expect(rest).toEqual([])
    expect(next).toEqual({ ...first, to: first.to + 300_000, nextTry: NOW })
  })

  it('begin another note after a bucket without one', () => {
    const [first] = noteOf({ kind: 'slot', slot }, ['2024-05-06T06:52:00Z'])
    if (first === undefined) throw new Error('a note is needed')
    const later = noteOf({ kind: 'slot', slot: slot + 600_000 }, ['2024-05-06T07:02:00Z'], [first])
    expect(later).toMatchObject([{ from: first.from + 600_000, to: first.to + 600_000, since: NOW }])
  })

  it('leave the note of an outage that begins at the same time and is longer', () => {
    const [first] = noteOf({ kind: 'slot', slot }, ['2024-05-06T06:52:00Z'])
    if (first === undefined) throw new Error('a note is needed')
    const outage: Note = { ...first, state: 'failed', reason: 'no answer', from: at('06:00:00'), to: END_OF_TIME }
    const range = { kind: 'range', from: at('06:00:00'), to: at('06:10:00'), interval: '5m' } as const
    expect(noteOf(range, ['2024-05-06T06:02:00Z', '2024-05-06T06:07:00Z'], [outage])).toEqual([])
  })
})

describe('range that no provider serves', () => {
  it('counts its first try although it was recorded as missed before', () => {
    const [entity] = tvl.entities(registry)
    if (entity === undefined) throw new Error('a DAO is needed')
    const times = { from: Date.parse('2024-05-01T00:00:00Z'), to: Date.parse('2024-05-02T00:00:00Z') }
    const record = {
      entity: entity.key,
      queueClass: 'history',
      provider: '',
      reason: 'not collected in time',
      since: 0,
    } as const
    const missed: Note = { ...record, ...times, state: 'missed', tries: 0, nextTry: END_OF_TIME }
    const notes = toNotes({
      ...{ dataset: tvl.dataset, payload: { kind: 'range', interval: '1d', ...times }, now: NOW, results: [] },
      answers: createAnswers([entity], true).all(),
      ...{ reports: [], before: [missed] },
    })
    expect(notes).toMatchObject([{ ...times, state: 'unserved', tries: 1, since: NOW }])
  })
})

describe('range beyond the end of its entity', () => {
  const END = '2024-04-04T00:00:00Z'
  const range = { from: '2024-04-01T00:00:00Z', to: '2024-04-08T00:00:00Z' } as const
  const dao = tvl.entities(registry)[0]?.key
  const token = prices.entities(registry)[0]?.key

  it('has no reports and notes after the end', () => {
    const rows = [{ dao, observed_at: '2024-04-02T00:00:00Z' }]
    const coverageReports = reportsOf(
      tvl,
      { ...range, interval: '1d' },
      { provider: 'defillama', rows, read: [], steps: [] },
      END,
    )
    expect(coverageReports).toEqual({
      reports: [
        ['stored', 86_400, '2024-04-02T00:00', '2024-04-03T00:00'],
        ['nothing', 86_400, '2024-04-01T00:00', '2024-04-02T00:00'],
        ['nothing', 86_400, '2024-04-03T00:00', '2024-04-04T00:00'],
      ],
      notes: [],
    })
  })

  it('cuts a row of a long step at the end', () => {
    const rows = [{ token, observed_at: '2024-04-01T00:00:00Z' }]
    const coverageReports = reportsOf(
      prices,
      { ...range, interval: '7d' },
      { provider: 'a', rows, read: [], steps: [] },
      END,
    )
    expect(coverageReports.reports.map(([, , , to]) => to)).toEqual(['2024-04-04T00:00'])
    expect(coverageReports.notes).toEqual([])
  })
})
