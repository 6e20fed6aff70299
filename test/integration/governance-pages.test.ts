import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Dao } from '../../shared/registry/entities.ts'
import governance from '../../workers/jobs/governance.ts'
import { runJob } from '../../workers/run/runner.ts'
import { HUB_START, startHub, toProposal, toVotes } from '../support/hub.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'

const HOUR = 3_600_000
/** The hub's only space: every DAO of the registry votes here. */
const SPACE = 'one.eth'
const START = Date.parse('2024-05-06T07:00:00Z')
const proposals = [toProposal()]
const votes = [
  ...toVotes(3500, HUB_START + 10_000),
  ...toVotes(2500, HUB_START + 20_000),
  ...toVotes(700, HUB_START + 30_000),
  ...toVotes(4000, HUB_START + 40_000),
  ...toVotes(2000, HUB_START + 50_000),
]

let hub: Awaited<ReturnType<typeof startHub>>
let pipeline: Pipeline

beforeAll(async () => {
  hub = await startHub({ id: SPACE, name: 'Aave', proposals, votes })
  pipeline = await createPipeline({ now: START + 1, settings: { SNAPSHOT_BASE_URL: hub.baseUrl } })
})
afterAll(async () => {
  await pipeline?.close()
  await hub?.close()
})

/** A job with runs of at most eight pages, and a high rate limit: the first client sets it. */
async function run(db = pipeline.context.db) {
  const { config, registry } = pipeline
  const aave = { ...(registry.daoBySlug.get('aave') as Dao), snapshotSpace: SPACE, formerSnapshotSpaces: [] }
  governance.connect(pipeline.context)
  const snapshot = { ...config.providers.snapshot, requestsPerMinute: 1 }
  const context = {
    ...pipeline.context,
    db,
    config: { ...config, providers: { ...config.providers, snapshot } },
    registry: { ...registry, daos: [aave] },
  }
  const slot = Math.floor(pipeline.clock.now / HOUR) * HOUR
  return runJob(governance, governance.connect(context), context, { kind: 'slot', slot })
}
const count = async (table: string) => {
  const sql = `SELECT count() AS n FROM ${table} FINAL`
  return (await pipeline.database.db.rows({ name: 'count', sql, schema: z.object({ n: z.number() }) }))[0]?.n
}

describe('voting history longer than a run', () => {
  it('is read by several runs of one job, each from the previous cursor, and is complete only at its end', async () => {
    const inserts: number[] = []
    const { db } = pipeline.context
    const watched: typeof db = {
      ...db,
      insert: (insert) => {
        if (insert.table === 'governance_in') inserts.push(insert.rows.length)
        return db.insert(insert)
      },
    }
    await run(watched)
    expect(inserts.length).toBeGreaterThan(1)
    expect(inserts.every((rows) => rows <= 8 * 1000)).toBe(true)
    expect(await count('dao_votes')).toBe(12_700)
    expect(await count('governance_readings')).toBe(1)
  })

  it('is read again from the last stored cursor if a run fails before it stores one', async () => {
    await pipeline.database.db.command({ name: 'forget', sql: 'TRUNCATE TABLE job_state' })
    await run()
    expect(await count('dao_votes')).toBe(12_700)
    expect(await count('dao_proposals')).toBe(1)
  })
})
