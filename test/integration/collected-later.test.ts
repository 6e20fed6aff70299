import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { backUp } from '../../clickhouse/backup.ts'
import { restore } from '../../clickhouse/restore.ts'
import type { Dataset } from '../../shared/datasets/define-dataset.ts'
import { jobs } from '../../workers/jobs/list.ts'
import { runJob } from '../../workers/run/runner.ts'
import { createTestConfig, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { createPipeline } from '../support/pipeline.ts'
import { silent } from '../support/silent.ts'

const AT = '2024-05-01T00:00:00.000Z'
const [EARLIER, LATER] = ['2024-05-01T01:00:00.000Z', '2024-05-01T01:00:01.000Z']

const address = (n: number) => `0x${String(n).repeat(40)}`
const members = (value: number) => ({ active_members: 1, total_members: value })

interface Sample {
  /** The row of one entity at one time, without its key columns. */
  readonly row: (value: number) => object
  /** The column with the value. */
  readonly column: string
  /** The tables of the row, if they differ from the dataset's. */
  readonly tables?: readonly string[]
}

/** A row of each collected dataset, by name. */
const SAMPLES: Readonly<Record<string, Sample>> = {
  prices: {
    row: (price) => ({ observed_at: AT, is_latest: true, price }),
    column: 'price',
    tables: ['token_prices', 'token_quotes', 'token_price_rollups'],
  },
  tvl: {
    row: (tvl_usd) => ({ observed_at: AT, tvl_usd }),
    column: 'tvl_usd',
    tables: ['protocol_tvl', 'protocol_tvl_latest'],
  },
  holders: {
    row: (total_holders) => ({ observed_at: AT, total_holders, top100_share: 1, holders: [] }),
    column: 'total_holders',
    tables: ['token_holders', 'token_holders_latest'],
  },
  daos: {
    row: (n) => ({ field: 'website', source: 'coingecko', value: String(n), observed_at: AT }),
    column: 'toUInt32(value)',
  },
  governance: {
    row: (votes) => ({ space: 'x.eth', kind: 'proposal', proposal: '0x1', address: address(1), at: AT, votes }),
    column: 'votes',
    tables: ['dao_proposal_details'],
  },
  governors: {
    row: (voting_power) => ({
      ...{ space: `eip155:1:${address(1)}`, kind: 'vote', proposal: `eip155:1:${address(1)}/1`, address: address(2) },
      ...{ at: AT, choice: '1', voting_power },
    }),
    column: 'voting_power',
    tables: ['dao_cast_votes'],
  },
  delegations: {
    row: (power) => ({
      ...{ space: `eip155:1:${address(1)}`, kind: 'power', at: AT, block_number: 1, log_index: 1, tx: '0x1' },
      ...{ delegate: address(2), previous: '0', power: String(power), decimals: 0, cause: 'transfer' },
    }),
    column: 'power',
    tables: ['delegate_powers'],
  },
  treasury: { row: (value_usd) => ({ observed_at: AT, value_usd, tokens: [], source: 'x' }), column: 'value_usd' },
  'treasury-flows': {
    row: (block_number) => ({
      ...{ recorded_at: AT, chain: 'ethereum', block_number, transaction_hash: '0x1', base_units: '1', occurrence: 0 },
      ...{ sender: address(1), recipient: address(2), wallet: address(2), counterparty: address(1) },
      ...{ direction: 'in', kind: 'income', rule: 'inflow', provider: 'x' },
    }),
    column: 'block_number',
  },
  fees: { row: (fees_usd) => ({ observed_at: AT, fees_usd }), column: 'fees_usd' },
  ratings: {
    row: (overall_rating) => ({ observed_at: AT, rated_at: AT, overall_rating, source: 'x' }),
    column: 'overall_rating',
    tables: ['dao_ratings', 'dao_ratings_latest'],
  },
  twitter: {
    row: (followers) => ({ observed_at: AT, followers }),
    column: 'followers',
    tables: ['twitter_counts', 'twitter_counts_latest'],
  },
  discord: {
    row: (value) => ({ observed_at: AT, ...members(value) }),
    column: 'total_members',
    tables: ['discord_members', 'discord_members_latest'],
  },
  telegram: { row: (value) => ({ observed_at: AT, ...members(value) }), column: 'total_members' },
  'twitter-sentiment': {
    row: (positive_posts) => ({ observed_at: AT, positive_posts, neutral_posts: 0, negative_posts: 0, lexicon: 'x' }),
    column: 'positive_posts',
    tables: ['twitter_sentiment', 'twitter_sentiment_latest'],
  },
  'index-token': {
    row: (value_usd) => ({ created_at: AT, block_number: 1, value: '1', total_supply: '1', value_usd, eth_usd: 1 }),
    column: 'value_usd',
  },
  'dex-trades': {
    row: (amount) => ({
      ...{ traded_at: AT, transaction_hash: '0x1', log_index: 1, chain: 'ethereum', block_number: 1, pool: address(1) },
      ...{ exchange: 'x', taker: address(2), side: 'BUY', amount },
    }),
    column: 'amount',
  },
}

const collected = jobs.map(({ dataset }) => dataset).filter(({ isCollected }) => isCollected)

describe('two rows of one key', () => {
  let database: TestDatabase
  beforeAll(async () => {
    database = await createTestDatabase(createTestConfig())
  })
  afterAll(() => database.drop())

  const sampleOf = ({ name }: Dataset) => {
    const sample = SAMPLES[name]
    if (sample === undefined) throw new Error(`there is no sample of ${name}`)
    return sample
  }
  const store = (dataset: Dataset, key: number, value: number, collected_at: string) => {
    const row = { [dataset.entity ?? '']: key, collected_at, ...sampleOf(dataset).row(value) }
    return database.db.insert({ table: dataset.table, rows: [row] })
  }
  const read = async (dataset: Dataset, key: number) => {
    const { tables = [dataset.table], column } = sampleOf(dataset)
    const statements = tables.map(
      (table) => `SELECT toFloat64(${column}) AS value FROM ${table} FINAL WHERE ${dataset.entity} = {key: UInt64}`,
    )
    const [sql, params] = [statements.join(' UNION ALL '), { key }]
    const rows = await database.db.rows({ name: 'stored', sql, params, schema: z.object({ value: z.number() }) })
    return { values: [...new Set(rows.map(({ value }) => value))], tables: rows.length >= tables.length }
  }

  // Prices have a collection time in minutes; `token-prices.test.ts` tests them.
  it.each(collected.filter(({ name }) => name !== 'prices'))(
    'keep the later collected row of $name, in any order of insertion',
    async (dataset) => {
      await store(dataset, 1, 10, EARLIER)
      await store(dataset, 1, 20, LATER)
      expect(await read(dataset, 1)).toEqual({ values: [20], tables: true })
      await store(dataset, 2, 20, LATER)
      await store(dataset, 2, 10, EARLIER)
      expect(await read(dataset, 2)).toEqual({ values: [20], tables: true })
    },
  )

  it('keep a row that is newer than the restored backup', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'dao-data-collected-'))
    try {
      for (const dataset of collected) await store(dataset, 3, 10, EARLIER)
      await backUp(database.db, join(folder, 'backup'), () => {})
      const later = '2024-05-02T00:00:00.000Z'
      for (const dataset of collected) await store(dataset, 3, 20, later)
      const options = { intoExisting: true, log: silent, onTable: () => {} }
      await restore(database.server, database.db, join(folder, 'backup'), options)
      for (const dataset of collected)
        expect([dataset.name, await read(dataset, 3)]).toEqual([dataset.name, { values: [20], tables: true }])
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})

it('a run stores its start as the collection time of its rows', async () => {
  const pipeline = await createPipeline()
  try {
    const job = jobs.find(({ name }) => name === 'tvl')
    if (job === undefined) throw new Error('there is no job tvl')
    const began = pipeline.clock.now
    const collectors = job.connect(pipeline.context).map((one) => ({
      ...one,
      collect: async (run: Parameters<typeof one.collect>[0]) => {
        const rows = await one.collect(run)
        pipeline.clock.now += 60_000
        return rows
      },
    }))
    const slot = Math.floor(began / 3_600_000) * 3_600_000
    const { rows } = await runJob(job, collectors, pipeline.context, { kind: 'slot', slot, again: true })
    expect(rows).toBeGreaterThan(0)
    const sql = 'SELECT DISTINCT collected_at FROM protocol_tvl'
    const schema = z.object({ collected_at: z.string() })
    expect(await pipeline.database.db.rows({ name: 'collected', sql, schema })).toEqual([
      { collected_at: new Date(began).toISOString() },
    ])
  } finally {
    await pipeline.close()
  }
})

it('rows with the same sorting key are always in one partition', async () => {
  const { db, drop } = await createTestDatabase(createTestConfig())
  try {
    const sql = `SELECT name, partition_key, sorting_key FROM system.tables
      WHERE database = currentDatabase() AND partition_key != ''`
    const schema = z.object({ name: z.string(), partition_key: z.string(), sorting_key: z.string() })
    const tables = await db.rows({ name: 'partitions', sql, schema })
    expect(tables.length).toBeGreaterThan(0)
    for (const { name, partition_key, sorting_key } of tables) {
      const column = /^toYear\((\w+)\)$/.exec(partition_key)?.[1]
      expect([name, sorting_key.split(', ')]).toEqual([name, expect.arrayContaining([column])])
    }
  } finally {
    await drop()
  }
})
