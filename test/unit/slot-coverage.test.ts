import { describe, expect, it } from 'vitest'
import type { ReadTime } from '../../shared/ledger/ledger.ts'
import { toReports } from '../../shared/ledger/record.ts'
import dexTrades from '../../workers/jobs/dex-trades.ts'
import governance from '../../workers/jobs/governance.ts'
import indexToken from '../../workers/jobs/index-token.ts'

const SLOT = Date.parse('2026-05-06T07:00:00Z')

it.each(['2026-05-06T06:59:50.000Z', '2026-05-06T07:00:02.000Z'])(
  'toReports covers the bucket of a slot without history, regardless of the block time: %s',
  (created_at) => {
    const input = [{ provider: 'node', rows: [{ index_key: 7, created_at }], read: [], steps: [] }]
    const payload = { kind: 'slot', slot: SLOT } as const
    const [report, ...rest] = toReports({
      dataset: indexToken.dataset,
      payload,
      results: input,
      answers: [],
      now: SLOT + 20_000,
    })
    const bucket = SLOT / 300_000
    expect(report).toEqual({ entity: 7, state: 'stored', provider: 'node', seconds: 300, first: bucket, last: bucket })
    expect(rest).toEqual([])
  },
)

it('toReports covers the bucket of a row observed hours before its slot, not the slot', () => {
  const created_at = '2026-05-06T05:01:00.000Z'
  const input = [{ provider: 'node', rows: [{ index_key: 7, created_at }], read: [], steps: [] }]
  const payload = { kind: 'slot', slot: SLOT } as const
  const [report] = toReports({ dataset: indexToken.dataset, payload, results: input, answers: [], now: SLOT + 20_000 })
  const bucket = Date.parse('2026-05-06T05:00:00Z') / 300_000
  expect(report).toMatchObject({ first: bucket, last: bucket })
})

describe('toReports of a dataset that resumes from cursors', () => {
  const HOUR = 3_600_000
  const hourOf = (ms: number) => ms / HOUR
  const reportsOf = (reading: ReadTime, now = SLOT + 20_000) =>
    toReports({
      dataset: dexTrades.dataset,
      payload: { kind: 'slot', slot: SLOT },
      results: [{ provider: 'moralis', rows: [], read: [{ entity: 7, ...reading }], steps: [] }],
      answers: [],
      now,
    })

  it('covers the hours that the reading includes completely', () => {
    const covered = { entity: 7, state: 'stored', provider: 'moralis', seconds: 3600 }
    expect(reportsOf({ from: SLOT - 90 * HOUR, to: SLOT })).toEqual([
      { ...covered, first: hourOf(SLOT) - 90, last: hourOf(SLOT) - 1 },
    ])
    expect(reportsOf({ from: SLOT - 90 * HOUR + 1, to: SLOT - 1 })).toEqual([
      { ...covered, first: hourOf(SLOT) - 89, last: hourOf(SLOT) - 2 },
    ])
  })

  it('covers nothing after the time of the reading, and nothing within one hour', () => {
    expect(reportsOf({ from: SLOT - 9 * HOUR, to: SLOT }, SLOT - 2 * HOUR)).toMatchObject([{ last: hourOf(SLOT) - 3 }])
    expect(reportsOf({ from: SLOT - HOUR + 1, to: SLOT })).toEqual([])
  })

  it.each([
    ['the expected start', 500, 500],
    ['its newest bucket if no start is expected', undefined, Math.floor(SLOT / (24 * HOUR))],
  ])('covers everything since %s if the reading began at the first event', (_, begins, first) => {
    const [report] = toReports({
      dataset: governance.dataset,
      payload: { kind: 'slot', slot: SLOT },
      results: [{ provider: 'snapshot', rows: [], read: [{ entity: 7, to: SLOT }], steps: [] }],
      answers: [],
      now: SLOT + 20_000,
      begins,
    })
    expect(report).toMatchObject({ first, last: Math.floor(SLOT / (24 * HOUR)) })
  })
})
