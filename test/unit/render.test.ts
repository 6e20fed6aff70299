import { describe, expect, it } from 'vitest'
import { type Cluster, renderStatement } from '../../clickhouse/cluster/render.ts'
import { readShardingColumns, toShardingColumns, toShardingKey } from '../../clickhouse/cluster/sharding.ts'
import { loadMigrations } from '../../clickhouse/migrations.ts'
import { MIGRATIONS_TABLE } from '../../clickhouse/schema/stored.ts'

const cluster = { cluster: 'dao', database: 'dao_data' }
const statements = [MIGRATIONS_TABLE, ...loadMigrations().flatMap((migration) => migration.statements)]
const render = (target?: Cluster) => statements.flatMap((statement) => renderStatement(statement, target))
const withoutBlanks = (sql: string) => sql.trim().replace(/\s+/g, ' ')
const withoutComments = (sql: string) => sql.replace(/^[ \t]*--.*\n?/gm, '')

describe('renderStatement with all migrations', () => {
  it('returns the statements unchanged for a single server', async () => {
    const rendered = render()
    expect(rendered).toHaveLength(statements.length)
    const text = rendered.map((statement) => `${withoutComments(statement).trim()};\n`).join('\n')
    await expect(text).toMatchFileSnapshot('__snapshots__/schema-of-a-server.sql')
  })

  it('returns the same statements for the local tables of a cluster, with replicated engines', () => {
    for (const statement of statements) {
      const [local = ''] = renderStatement(statement, cluster)
      const [, path] = /Replicated\w*MergeTree\('([^']*)', '\{replica\}'/.exec(local) ?? []
      const [, table] = /^CREATE TABLE IF NOT EXISTS (\w+)_local/.exec(local) ?? []
      if (table !== undefined && !local.includes('ENGINE = Null'))
        expect([path, local.includes('replicated_deduplication_window = 0')]).toEqual([
          `/clickhouse/tables/{shard}/dao_data/${table}`,
          true,
        ])
      const single = local
        .replace(" ON CLUSTER 'dao'", '')
        .replaceAll('_local', '')
        .replace(/ENGINE = Replicated(\w*MergeTree)\('[^']*', '\{replica\}'(?:, )?/, 'ENGINE = {engine}$1(')
        .replace(/(\{engine\}\w*MergeTree)\(\)/, '$1')
        .replace(/(\n| *,|\nSETTINGS) *replicated_deduplication_window = 0/, '')
        .replace(/\nSETTINGS$/, '')
        .replace(/ SYNC$/, '')
      expect(withoutBlanks(single)).toBe(withoutBlanks(withoutComments(statement)))
    }
  })

  it('returns a distributed table with a sharding key over each local table of a cluster', () => {
    for (const statement of statements) {
      const [, table] = /^CREATE TABLE IF NOT EXISTS (\w+)/.exec(withoutComments(statement).trim()) ?? []
      const [, distributed] = renderStatement(statement, cluster)
      if (table === undefined) continue
      const key = `cityHash64(${readShardingColumns().get(table)})`
      expect(distributed).toBe(
        `CREATE TABLE IF NOT EXISTS ${table} ON CLUSTER 'dao' AS ${table}_local\nENGINE = Distributed('dao', 'dao_data', '${table}_local', ${key})`,
      )
    }
  })

  it('knows the sharding column of every table', () => {
    const tables = statements.flatMap((statement) => /CREATE TABLE IF NOT EXISTS (\w+)/.exec(statement)?.[1] ?? [])
    expect([...readShardingColumns().keys()].sort()).toEqual(tables.sort())
    expect(toShardingColumns(statements)).toEqual(readShardingColumns())
  })

  it('keeps rows that replace each other on one shard, also rows of tables that store nothing', () => {
    const columnOf = (table: string) => readShardingColumns().get(table)
    expect(['token_prices', 'dao_votes', 'market_caps', 'coverage_wanted'].map(columnOf)).toEqual([
      ...['token', 'dao', 'recorded_at', 'dataset'],
    ])
    expect(['token_quotes_in', 'governance_in', 'governors_in', 'coverage_in'].map(columnOf)).toEqual([
      ...['token', 'dao', 'dao', 'entity'],
    ])
    expect(() => toShardingKey('nowhere')).toThrow('nowhere has no sharding key')
  })

  it('shards the rows of a view by the same column as the rows that it reads', () => {
    const text = statements.map(withoutComments).join(';')
    const views = text.matchAll(/CREATE MATERIALIZED VIEW IF NOT EXISTS (\w+) TO (\w+) AS\s[^;]*?\bFROM (\w+)/g)
    for (const [, view, target = '', source = ''] of views)
      expect([view, readShardingColumns().get(target)]).toEqual([view, readShardingColumns().get(source)])
  })

  it('sets fsync after insert for every table', () => {
    const text = statements.join('\n')
    const tables = statements.flatMap((statement) => {
      const [, table] = /^CREATE TABLE IF NOT EXISTS (\w+)[\s\S]*^ENGINE = \{engine\}/m.exec(statement) ?? []
      return table === undefined || table === 'migrations' ? [] : [table]
    })
    expect(tables.length).toBeGreaterThan(40)
    const lacking = tables.filter(
      (table) =>
        !new RegExp(`ALTER TABLE ${table} MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1`).test(text),
    )
    expect(lacking).toEqual([])
  })

  it('runs every statement on all nodes, and views read only local tables', () => {
    for (const statement of render(cluster)) {
      // Inserts use the distributed tables, which exist on every node.
      if (statement.startsWith('INSERT INTO ')) expect(statement).not.toContain('_local')
      else expect(statement).toContain(" ON CLUSTER 'dao'")
      expect(statement).not.toContain('{engine}')
      if (!statement.startsWith('CREATE MATERIALIZED VIEW')) continue
      const tables = [...statement.matchAll(/\b(?:TO|FROM|JOIN) (\w+)/g)].map(([, table]) => table)
      expect(tables.length).toBeGreaterThan(1)
      for (const table of tables) expect(table).toMatch(/_local$/)
    }
  })
})

describe('renderStatement on a cluster', () => {
  it('changes columns of both tables, and other properties only of the local table', () => {
    expect(renderStatement("ALTER TABLE daos ADD COLUMN colour String DEFAULT 'red' CODEC(ZSTD(1))", cluster)).toEqual([
      "ALTER TABLE daos_local ON CLUSTER 'dao' ADD COLUMN colour String DEFAULT 'red' CODEC(ZSTD(1))",
      "ALTER TABLE daos ON CLUSTER 'dao' ADD COLUMN colour String DEFAULT 'red'",
    ])
    expect(renderStatement('ALTER TABLE daos MODIFY SETTING merge_max_block_size = 8192', cluster)).toEqual([
      "ALTER TABLE daos_local ON CLUSTER 'dao' MODIFY SETTING merge_max_block_size = 8192",
    ])
    expect(renderStatement('ALTER TABLE daos_mv MODIFY QUERY\nSELECT key FROM daos', cluster)).toEqual([
      "ALTER TABLE daos_mv ON CLUSTER 'dao' MODIFY QUERY\nSELECT key FROM daos_local",
    ])
    expect(renderStatement('DROP TABLE IF EXISTS daos', cluster)).toEqual([
      "DROP TABLE IF EXISTS daos ON CLUSTER 'dao' SYNC",
      "DROP TABLE IF EXISTS daos_local ON CLUSTER 'dao' SYNC",
    ])
  })

  it.each([
    'OPTIMIZE TABLE daos FINAL',
    'CREATE TABLE IF NOT EXISTS unknown (a Int8) ENGINE = {engine}MergeTree ORDER BY a',
    'CREATE TABLE IF NOT EXISTS daos (a Int8)\nENGINE = Memory',
    'ALTER TABLE unknown ADD COLUMN a Int8',
  ])('rejects a statement without a cluster form: %s', (statement) => {
    expect(() => renderStatement(statement, cluster)).toThrow(expect.objectContaining({ code: 'migration' }))
  })
})
