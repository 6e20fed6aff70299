import { spawn } from 'node:child_process'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { DuckDBInstance } from '@duckdb/node-api'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { published as declared } from '../../workers/publish/datasets.ts'
import { createPublished, NOW, type Published, toNumber } from '../support/published.ts'

let store: Published
beforeAll(async () => {
  store = await createPublished()
})
afterAll(() => store?.close())

const toIso = (value: unknown) => new Date(`${String(value).replace(' ', 'T').replace(/\+00$/, '')}Z`).toISOString()
const toDay = (value: unknown) => new Date(String(value)).toISOString()

describe('publish', () => {
  it('writes every dataset with described columns and whole files', async () => {
    const { datasets } = await store.catalogOf()
    expect(datasets.map(({ name }) => name)).toEqual(declared.map(({ name }) => name))
    const empty = datasets.filter(({ partitions }) => partitions.length === 0).map(({ name }) => name)
    expect(empty).toEqual(['tvl', 'index-token'])
    const columns = datasets.flatMap((dataset) => dataset.columns)
    expect(columns.filter(({ type, description }) => type === '' || description === '')).toEqual([])
    expect(await store.faultsOf()).toEqual([])
  })

  it('has the points of the API for each interval and month', async () => {
    const found = await store.partitionsOf('prices')
    expect(new Set(found.map(({ keys }) => keys.interval))).toEqual(new Set(['5m', '30m', '1h', '4h', '1d', '7d']))
    const yearly = found.filter(({ keys }) => keys.month === undefined)
    expect(yearly.map(({ keys }) => keys)).toEqual(['1d', '7d'].map((interval) => ({ interval, year: '2024' })))
    // A row of a file of a year has its month, like the rows of the other files.
    const months = found.flatMap(({ keys: { interval, year, month } }) =>
      (month === undefined ? ['01', '02', '03', '04'] : [month]).map((one) => ({ interval, year, month: one })),
    )
    for (const keys of months) {
      const from = new Date(Date.UTC(Number(keys.year), Number(keys.month) - 1)).toISOString()
      const to = new Date(Date.UTC(Number(keys.year), Number(keys.month))).toISOString()
      const { id } = store.tokenAt(2)
      const answer = (await store.get(
        `/data/tokens/historic-financial?id=${id}&interval=${keys.interval}&start=${from}&end=${to}`,
      )) as { data: { timestamp: string; quote: { USD: Record<string, number | string | null> } }[] }
      const rows = await store.query(
        `SELECT * FROM prices WHERE token_id = '${id}' AND interval = '${keys.interval}' AND year = ${keys.year} AND month = ${Number(keys.month)}`,
      )
      expect(
        rows.map((row) => ({
          timestamp: toIso(row.timestamp),
          USD: {
            ...{
              price: toNumber(row.price),
              volume_24h: toNumber(row.volume_24h),
              market_cap: toNumber(row.market_cap),
            },
            ...{ total_supply: toNumber(row.total_supply), circulating_supply: toNumber(row.circulating_supply) },
            timestamp: toIso(row.observed_at),
          },
        })),
        `${keys.interval} ${keys.year}-${keys.month}`,
      ).toEqual(answer.data.map(({ timestamp, quote }) => ({ timestamp, USD: quote.USD })))
    }
  })

  it.each([
    ['treasury', 'daos/treasury/historic', 'valueUsd', 'value_usd'],
    ['treasury', 'daos/treasury/historic', 'stablecoinUsd', 'stablecoin_usd'],
    ['fees', 'daos/fees/historic', 'revenueUsd', 'revenue_usd'],
    ['twitter', 'daos/socials/historic-twitter', 'followers', 'followers'],
    ['discord', 'daos/socials/historic-discord', 'activeMembers', 'active_members'],
  ])('has the points of the API in %s: %s, %s', async (name, path, member, column) => {
    const dao = store.daoAt(1)
    const points = (await store.get(`/data/${path}?id=${dao.id}&limit=1000`)) as Record<string, number | null>[]
    const rows = await store.query(
      `SELECT ${column}, dao_name FROM ${name} WHERE dao_id = '${dao.id}' ORDER BY day DESC`,
    )
    expect(rows.map((row) => toNumber(row[column]))).toEqual(points.map((point) => point[member]))
    expect(new Set(rows.map((row) => row.dao_name))).toEqual(new Set([dao.name]))
    expect(points.length).toBeGreaterThan(5)
  })

  it('has the stored share of the due hours of a year, for tokens whose holders are collected in turn', async () => {
    const year = (await store.partitionsOf('holders')).find(({ keys }) => keys.year === '2024')
    expect([year?.keys.month, year?.coverage.complete]).toEqual([undefined, 0.5])
  })

  it('has the assets of treasuries as the API has them', async () => {
    const dao = store.daoAt(1)
    const records = (await store.get(`/data/daos/treasury/holdings/historic?id=${dao.id}&limit=10000`)) as Record<
      string,
      string | number | null
    >[]
    const rows = await store.query(`SELECT * FROM treasury_holdings WHERE dao_id = '${dao.id}'`)
    const keyOf = (...values: unknown[]) => JSON.stringify(values)
    const expected = records.map((one) =>
      keyOf(
        one.recordedAt,
        one.symbol,
        one.token,
        one.contractAddress,
        one.chain,
        one.kind,
        one.quantity,
        one.valueUsd,
      ),
    )
    const found = rows.map((row) => {
      const { symbol, token_id, contract_address, chain_id, kind, quantity, value_usd } = row
      return keyOf(
        ...[
          toDay(row.day),
          symbol,
          token_id,
          contract_address,
          chain_id,
          kind,
          toNumber(quantity),
          toNumber(value_usd),
        ],
      )
    })
    expect(found.sort()).toEqual(expected.sort())
    expect(found.length).toBeGreaterThan(8)
  })

  it('has the proposals and votes of the API', async () => {
    const dao = store.database.registry.daos.find(({ live, snapshotSpace }) => live && snapshotSpace !== null)
    for (const [name, path] of [
      ['proposals', 'proposals'],
      ['votes', 'votes'],
    ] as const) {
      const records = (await store.get(`/data/daos/governance/${path}?id=${dao?.id}&source=all&limit=1000`)) as {
        _id: string
      }[]
      const rows = await store.query(`SELECT ${name.slice(0, -1)}_id AS id FROM ${name} WHERE dao_id = '${dao?.id}'`)
      expect(rows.map(({ id }) => id).sort()).toEqual(records.map(({ _id }) => _id).sort())
      expect(records.length).toBeGreaterThan(3)
    }
  })

  it('has the transfers of treasuries as the API has them, without spam', async () => {
    const dao = store.database.registry.daoBySlug.get('ens')
    const records = (await store.get(`/data/daos/treasury/flows?id=${dao?.id}&exact=true&limit=1000`)) as Record<
      string,
      unknown
    >[]
    const rows = await store.query('SELECT * FROM treasury_flows ORDER BY recorded_at DESC')
    expect(
      rows.map((row) => ({
        ...{ _id: row.flow_id, dao: row.dao_id, recordedAt: toIso(row.recorded_at), chain: row.chain_id },
        ...{ transactionHash: row.transaction_hash, wallet: row.wallet, direction: row.direction, leg: row.leg },
        ...{ symbol: row.symbol, contractAddress: row.contract_address, quantity: toNumber(row.quantity) },
        ...{ priceUsd: toNumber(row.price_usd), valueUsd: toNumber(row.value_usd), counterparty: row.counterparty },
        ...{ counterpartyLabel: row.counterparty_label, kind: row.kind, category: row.category, rule: row.rule },
        ...{ proposal: row.proposal_id, swapGroup: row.swap_group, quantityExact: row.quantity_exact },
      })),
    ).toEqual(records)
    const values = records.map(({ valueUsd }) => valueUsd)
    expect([values.includes(null), values.some((value) => Number(value) > 0)]).toEqual([true, true])
    expect(new Set(rows.map((row) => row.kind))).toEqual(new Set(['income', 'spending']))
    expect(new Set(rows.map((row) => row.month)).size).toBe(3)
  })

  it('has the delegations of the API, and none of a token that was not read completely', async () => {
    const { registry, writer } = store.database
    const unread = { ...registry.daoBySlug.get('aave')?.votingToken, space: 'eip155:1:0x2' }
    await writer.insert({
      table: 'delegations_in',
      rows: [
        {
          ...{ dao: registry.daoBySlug.get('aave')?.key, space: unread.space, at: new Date(NOW).toISOString() },
          ...{ kind: 'delegation', block_number: 99, log_index: 1, tx: `0x${'2'.repeat(64)}` },
          ...{ delegator: `0x${'7'.repeat(40)}`, from_delegate: '', to_delegate: `0x${'8'.repeat(40)}` },
        },
      ],
    })
    store.clock.at += 60_000
    await store.run()
    const rows = await store.query('SELECT * FROM delegations ORDER BY recorded_at DESC')
    for (const slug of ['aave', 'uniswap']) {
      const id = registry.daoBySlug.get(slug)?.id
      const records = (await store.get(`/data/daos/governance/delegations?id=${id}&limit=1000`)) as object[]
      const own = rows.filter((row) => row.dao_id === id)
      expect(
        own.map((row) => ({
          ...{ _id: row.delegation_id, recordedAt: toIso(row.recorded_at), delegator: row.delegator },
          ...{ from: row.from_delegate, to: row.to_delegate, transactionHash: row.transaction_hash },
        })),
      ).toEqual(records)
      expect(records).toHaveLength(5)
    }
    expect(rows).toHaveLength(10)
  })

  it('has the elements of each composition of the Index', async () => {
    const compositions = store.database.registry.index.compositions.filter(({ validFrom }) => validFrom <= Date.now())
    const rows = await store.query('SELECT * FROM index_elements ORDER BY valid_from, token_id')
    const expected = compositions.flatMap(({ id, validFrom, elements }, place) =>
      elements.map(({ token, quantity }) => ({
        ...{ composition: id, token: token.id, symbol: token.symbol, quantity: Number(quantity) },
        from: new Date(validFrom).toISOString(),
        to:
          compositions[place + 1] === undefined
            ? null
            : new Date(compositions[place + 1]?.validFrom ?? 0).toISOString(),
      })),
    )
    const found = rows.map((row) => ({
      ...{ composition: row.composition, token: row.token_id, symbol: row.token_symbol },
      ...{ quantity: toNumber(row.quantity), from: toIso(row.valid_from) },
      to: row.valid_to === null ? null : toIso(row.valid_to),
    }))
    const toText = (rows: object[]) => rows.map((row) => JSON.stringify(Object.entries(row).sort())).sort()
    expect(toText(found)).toEqual(toText(expected))
    expect(found.length).toBeGreaterThan(5)
    // The compositions that had started by the time of the API's answer.
    const answered = (await store.get('/data/index/compositions')) as {
      _id: string
      elements: { quantity: number }[]
    }[]
    expect(answered.length).toBeGreaterThan(0)
    for (const { _id, elements } of answered)
      expect(
        found
          .filter(({ composition }) => composition === _id)
          .map(({ quantity }) => quantity)
          .sort(),
      ).toEqual(elements.map(({ quantity }) => quantity).sort())
  })

  it('sorts the rows of each file by entity and time', async () => {
    for (const { path } of (await store.partitionsOf('prices')).filter(({ keys }) => keys.interval === '5m')) {
      const rows = await store.query(`SELECT token_id, timestamp FROM read_parquet('${join(store.folder, path)}')`)
      const keys = rows.map(({ token_id, timestamp }) => `${token_id} ${timestamp}`)
      expect(keys).toEqual([...keys].sort())
    }
  })
})

it('tables.sql copies the views of load.sql into a file that other tools open', async () => {
  const file = join(store.folder, 'dao-data.duckdb')
  const tables = await readFile(join(import.meta.dirname, '../../integrations/duckdb/tables.sql'), 'utf8')
  const run = async (...statements: readonly string[]) => {
    const instance = await DuckDBInstance.create(file)
    const connection = await instance.connect()
    for (const statement of statements.slice(0, -1)) await connection.run(statement)
    const rows = (await connection.runAndReadAll(statements.at(-1) ?? '')).getRowObjectsJson()
    connection.closeSync()
    instance.closeSync()
    return rows
  }
  const views = await readFile(join(store.folder, 'load.sql'), 'utf8')
  await run(`SET VARIABLE published = '${store.folder}'`, views, tables, 'SELECT 1')
  const names = [...tables.matchAll(/TABLE bi\.(\w+) AS/g)].map(([, name]) => name)
  expect(names.length).toBe(10)
  for (const name of names)
    expect(await run(`SELECT count(*)::INT AS rows FROM bi.${name}`), name).not.toEqual([{ rows: 0 }])
  expect(await run('SELECT DISTINCT interval FROM bi.prices')).toEqual([{ interval: '1d' }])
  await rm(file)
})

describe('load.sql', () => {
  /** Prints the rows of a statement by DuckDB over load.sql, in a process with another time zone. */
  const inNewYork = async (sql: string): Promise<unknown> => {
    const script = `
import { DuckDBInstance } from '@duckdb/node-api'
import { readFileSync } from 'node:fs'
const connection = await (await DuckDBInstance.create()).connect()
await connection.run("SET VARIABLE published = '" + process.argv[1] + "'")
await connection.run(readFileSync(process.argv[1] + '/load.sql', 'utf8'))
console.log(JSON.stringify((await connection.runAndReadAll(process.argv[2])).getRowObjectsJson()))`
    const child = spawn(process.execPath, ['--input-type=module', '-e', script, store.folder, sql], {
      cwd: join(import.meta.dirname, '../..'),
      env: { ...process.env, TZ: 'America/New_York' },
    })
    const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)])
    expect(stderr).toBe('')
    return JSON.parse(stdout)
  }

  it.each([
    ['treasury', 'daos/treasury/historic'],
    ['fees', 'daos/fees/historic'],
  ])('has the days of %s in any time zone', async (name, path) => {
    const { id } = store.daoAt(1)
    const points = (await store.get(`/data/${path}?id=${id}&limit=1000`)) as Record<string, string>[]
    const expected = points.map((point) => Object.values(point)[0]?.slice(0, 10)).sort()
    expect(expected).toContain('2024-03-01')
    const days = `SELECT current_setting('TimeZone') AS zone, list(strftime(day, '%Y-%m-%d') ORDER BY day) AS days,
      count(*) FILTER (day = '2024-03-01') AS first FROM ${name} WHERE dao_id = '${id}'`
    expect(await inNewYork(days)).toEqual([{ zone: 'America/New_York', days: expected, first: '1' }])
  })

  it('has days as dates, and times with their time zone', async () => {
    for (const { name, columns, partitions } of (await store.catalogOf()).datasets.filter(
      (one) => one.partitions.length > 0,
    )) {
      expect(partitions.length).toBeGreaterThan(0)
      const rows = await store.query(`DESCRIBE ${name.replaceAll('-', '_')}`)
      const types = new Map(rows.map((row) => [row.column_name, row.column_type]))
      for (const { name: column, type } of columns.filter((one) => /Date/.test(one.type)))
        expect([name, column, types.get(column)]).toEqual([
          ...[name, column, /Date32/.test(type) ? 'DATE' : 'TIMESTAMP WITH TIME ZONE'],
        ])
      expect(columns.filter((one) => one.name === 'day' && one.type !== 'Date32')).toEqual([])
      expect(
        rows.filter(
          (row) => /_at$|^timestamp$/.test(String(row.column_name)) && row.column_type !== 'TIMESTAMP WITH TIME ZONE',
        ),
      ).toEqual([])
    }
  })

  it('changes no setting and no variable of the session', async () => {
    const instance = await DuckDBInstance.create()
    const connection = await instance.connect()
    const readState = async () => {
      const read = async (sql: string) => (await connection.runAndReadAll(sql)).getRowsJson()
      return [
        await read('SELECT name, value FROM duckdb_settings() ORDER BY name'),
        await read('SELECT * FROM duckdb_variables() ORDER BY name'),
      ]
    }
    await connection.run("SET TimeZone = 'Asia/Tokyo'")
    const before = await readState()
    const views = await readFile(join(store.folder, 'load.sql'), 'utf8')
    await connection.run(views.replaceAll(/^CREATE OR REPLACE VIEW .*?;$/gms, ''))
    expect(await readState()).toEqual(before)
    connection.closeSync()
    instance.closeSync()
  })
})

describe('croissant.json', () => {
  it('describes each file and column', async () => {
    const croissant = JSON.parse(await readFile(join(store.folder, 'croissant.json'), 'utf8'))
    const catalog = await store.catalogOf()
    const files = catalog.datasets.flatMap(({ partitions }) => partitions)
    const objects = croissant.distribution.filter((one: { '@type': string }) => one['@type'] === 'cr:FileObject')
    expect(objects.map(({ sha256 }: { sha256: string }) => sha256)).toEqual(files.map(({ sha256 }) => sha256))
    expect(croissant.conformsTo).toBe('http://mlcommons.org/croissant/1.0')
  })
})
