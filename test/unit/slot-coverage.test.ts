import { expect, it } from 'vitest'
import { toReports } from '../../shared/ledger/record.ts'
import dexTrades from '../../workers/jobs/dex-trades.ts'
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

it('toReports covers nothing after the time of the read', () => {
  const input = [{ provider: 'moralis', rows: [], read: [7], steps: [] }]
  const payload = { kind: 'slot', slot: SLOT } as const
  const now = SLOT - 2 * 3_600_000
  const [report] = toReports({
    dataset: dexTrades.dataset,
    payload,
    results: input,
    answers: [],
    now,
    readSince: () => undefined,
  })
  expect(report).toMatchObject({ last: now / 3_600_000 })
})

it.each([
  ['its last read', 'moralis', 90],
  ['the start of this slot if another provider read before', 'ethereum', 0],
])('toReports covers the time since %s for a provider that resumes', (_, provider, buckets) => {
  const last = Math.floor(SLOT / 3_600_000)
  const input = [{ provider: 'moralis', rows: [], read: [7], steps: [] }]
  const payload = { kind: 'slot', slot: SLOT } as const
  const readSince = (by: string) => (by === provider ? last - 90 : undefined)
  const reports = toReports({
    dataset: dexTrades.dataset,
    payload,
    results: input,
    answers: [],
    now: SLOT + 20_000,
    readSince,
  })
  expect(reports).toEqual([
    { entity: 7, state: 'stored', provider: 'moralis', seconds: 3600, first: last - buckets, last },
  ])
})
