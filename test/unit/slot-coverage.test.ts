import { expect, it } from 'vitest'
import indexToken from '../../workers/jobs/index-token.ts'
import type { Collected } from '../../workers/run/collect.ts'
import { toReports } from '../../workers/run/to-reports.ts'

const SLOT = Date.parse('2026-05-06T07:00:00Z')

it.each(['2026-05-06T06:59:50.000Z', '2026-05-06T07:00:02.000Z'])(
  'a slot without history fills its own bucket, whenever the block was made: %s',
  (created_at) => {
    const given = [{ provider: 'node', rows: [{ index_key: 7, created_at }], read: [], steps: [] }]
    const collected = { given } as unknown as Collected
    const payload = { kind: 'slot', slot: SLOT } as const
    const [report, ...others] = toReports({ job: indexToken, payload, collected, now: SLOT + 20_000 })
    const bucket = SLOT / 300_000
    expect(report).toEqual({ entity: 7, state: 'stored', provider: 'node', seconds: 300, first: bucket, last: bucket })
    expect(others).toEqual([])
  },
)
