import { once } from 'node:events'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { readCoverage } from '../../shared/ledger/tables.ts'
import type { Database } from '../../shared/store/store.ts'
import type { Collector } from '../../workers/job/define-job.ts'
import discord from '../../workers/jobs/discord.ts'
import tvl from '../../workers/jobs/tvl.ts'
import { requestEach } from '../../workers/providers/requests.ts'
import { createRunner, PartialFailureError, runJob } from '../../workers/run/runner.ts'
import { type Handler, sendJson, startProviderServer } from '../provider-server.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'

const DAY = 86_400_000
const SLOT = Date.parse('2024-05-06T00:00:00Z')
const MIDNIGHT = SLOT + DAY

let pipeline: Pipeline
beforeEach(async () => {
  pipeline = await createPipeline({ now: MIDNIGHT - 10_000 })
})
afterEach(() => pipeline.close())

const stored = z.object({ at: z.string(), members: z.number() })
const readStored = () =>
  pipeline.database.db.rows({
    name: 'stored',
    sql: 'SELECT toString(observed_at) AS at, total_members AS members FROM discord_members FINAL ORDER BY dao',
    schema: stored,
  })

/** Runs a day's slot of a provider that counts its requests. */
async function runSlot(
  options: { onRequest?: (requests: number) => void; onStatement?: (name: string) => void } = {},
): Promise<PartialFailureError | undefined> {
  let requests = 0
  const answer: Handler = (_request, response) => {
    requests += 1
    options.onRequest?.(requests)
    sendJson(response, { members: requests })
  }
  const server = await startProviderServer(answer)
  const { context } = pipeline
  const settings = { provider: 'discord', timeoutMs: 5_000, maxBytes: 1_000, requestsPerMinute: 10_000 }
  const client = context.http.open({ ...settings, baseUrl: server.baseUrl })
  const collector: Collector = {
    provider: 'discord',
    covers: () => true,
    collect: ({ entities, signal, slot, ...run }) =>
      requestEach(
        entities,
        async ({ key }) => {
          const { members } = z.object({ members: z.number() }).parse(await client.json({ path: `/${key}`, signal }))
          return { dao: key, observed_at: new Date(slot).toISOString(), active_members: null, total_members: members }
        },
        { ...run, providerName: 'discord', concurrency: 1 },
      ),
  }
  const through = <A extends { name?: string; table?: string }, R>(request: (statement: A) => R) => {
    return (statement: A): R => {
      options.onStatement?.(statement.name ?? `insert ${statement.table}`)
      return request(statement)
    }
  }
  const { db } = context
  const watched: Database = { ...db, rows: through(db.rows) as Database['rows'], insert: through(db.insert) }
  try {
    await runJob(discord, [collector], { ...context, db: watched }, { kind: 'slot', slot: SLOT })
    return undefined
  } catch (error) {
    if (error instanceof PartialFailureError) return error
    throw error
  } finally {
    await server.close()
  }
}

const passMidnight = () => {
  pipeline.clock.now = MIDNIGHT + 14_000
}
const live = () => discord.entities(pipeline.registry).length
const readBuckets = async () => {
  const keys = discord.entities(pipeline.registry).map(({ key }) => key)
  const [first, last] = [SLOT / DAY - 1, SLOT / DAY + 2]
  const reports = await readCoverage(pipeline.database.db, discord.dataset, keys, { first, last })
  return reports.flatMap(({ first: from, last: to }) => (from === to ? [from] : [from, to]))
}

describe('worker that is suspended beyond the end of its slot', () => {
  it('stores all rows without a suspension', async () => {
    expect(await runSlot()).toBeUndefined()
    expect(await readStored()).toHaveLength(live())
  })

  it('stores nothing and sends no request if it was suspended before the first one', async () => {
    const requests: number[] = []
    const failure = await runSlot({
      onStatement: (name) => void (name === 'coverage-missing' && passMidnight()),
      onRequest: (count) => requests.push(count),
    })
    expect(requests).toEqual([])
    expect(failure?.message).toContain('no answer before the slot ended at 2024-05-07T00:00:00.000Z')
    expect(await readStored()).toEqual([])
    expect(await readBuckets()).toEqual([])
  })

  it('stores earlier responses and sends no further request if it was suspended between requests', async () => {
    const requests: number[] = []
    const failure = await runSlot({
      onRequest: (count) => {
        requests.push(count)
        if (count === 3) passMidnight()
      },
    })
    expect(requests).toEqual([1, 2, 3])
    const at = '2024-05-06 00:00:00.000'
    expect((await readStored()).map((row) => row.at)).toEqual([at, at])
    expect((await readStored()).map(({ members }) => members).sort()).toEqual([1, 2])
    expect(await readBuckets()).toEqual([SLOT / DAY, SLOT / DAY])
    expect(failure?.entities).toHaveLength(live() - 2)
  })

  it("stores all rows with the slot's day if it was suspended before the insert", async () => {
    await runSlot({ onStatement: (name) => void (name === 'insert discord_members' && passMidnight()) })
    const rows = await readStored()
    expect(rows).toHaveLength(live())
    expect([...new Set(rows.map(({ at }) => at))]).toEqual(['2024-05-06 00:00:00.000'])
    expect(new Set(await readBuckets())).toEqual(new Set([SLOT / DAY]))
  })
})

describe('slot in the future', () => {
  it('waits under its job id and is collected at its time', async () => {
    const hour = 3_600_000
    const next = Math.ceil(pipeline.clock.now / hour) * hour
    const runner = createRunner(tvl, pipeline.context)
    const queue = pipeline.queue('tvl')
    try {
      const [active, completed] = [once(runner, 'active'), once(runner, 'completed')]
      await queue.add('tvl', { kind: 'slot', slot: next }, { jobId: 'next' })
      await active
      const rows = () =>
        pipeline.database.db.rows({
          name: 'rows',
          sql: 'SELECT count() AS rows FROM protocol_tvl',
          schema: z.object({ rows: z.number() }),
        })
      expect(await rows()).toEqual([{ rows: 0 }])
      pipeline.clock.now = next + 1_000
      const [job] = await completed
      expect([job.id, job.returnvalue.rows > 0, job.attemptsMade]).toEqual(['next', true, 1])
    } finally {
      await runner.close()
    }
  })
})
