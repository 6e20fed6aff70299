import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync } from 'node:fs'
import { open, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { DuckDBInstance } from '@duckdb/node-api'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { toBucket } from '../../shared/buckets.ts'
import { tokenHolders } from '../../shared/datasets/holders.ts'
import { addCoverage } from '../../shared/ledger/tables.ts'
import { createDatabase, type Database } from '../../shared/store/store.ts'
import { toProgram } from '../../tools/children.ts'
import { type Catalog, readCatalog, verify } from '../../workers/publish/catalog.ts'
import { publishDaily } from '../../workers/publish/daily.ts'
import { published } from '../../workers/publish/datasets.ts'
import { type Outcome, publish } from '../../workers/publish/publish.ts'
import { openFolder, type Target } from '../../workers/publish/target.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { storeEveryDataset } from '../support/every-dataset.ts'
import { storeQuotes } from '../support/quotes.ts'
import { silent } from '../support/silent.ts'
import { toStoreSettings } from '../support/store-settings.ts'
import { toFlow } from '../support/stored-flows.ts'

/** The months before and after the first of March have rows. */
const NOW = Date.parse('2024-03-03T12:02:30Z')

const root = mkdtempSync(join(tmpdir(), 'dao-data-published-'))
const folder = join(root, 'published')
const config = createTestConfig({ PUBLISH_TO: folder })
let database: Awaited<ReturnType<typeof createApiDatabase>>
let api: TestApi
let at = NOW

const run = (
  options: { target?: Target; signal?: AbortSignal; keepDays?: number; db?: Database } = {},
): Promise<Outcome> =>
  publish({
    ...{ db: database.writer, registry: database.registry, target: openFolder(database.writer, folder) },
    ...{ keepDays: 7, publicUrl: 'https://data.example', log: silent, now: () => at, ...options },
  })

async function catalogOf(): Promise<Catalog> {
  const catalog = await readCatalog(openFolder(undefined, folder))
  if (catalog === undefined) throw new Error('nothing was published')
  return catalog
}

const partitionsOf = async (name: string) =>
  (await catalogOf()).datasets.find((dataset) => dataset.name === name)?.partitions ?? []

async function faultsOf(): Promise<string[]> {
  const faults: string[] = []
  for await (const fault of verify(openFolder(undefined, folder))) faults.push(fault)
  return faults
}

/** Every file below the folder with its time of change. */
async function readTimes(): Promise<Record<string, number>> {
  const files = (await readdir(folder, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile())
  const paths = files.map((entry) => join(entry.parentPath, entry.name))
  return Object.fromEntries(await Promise.all(paths.map(async (path) => [path, (await stat(path)).mtimeMs])))
}

/** Rows of a query by DuckDB over the views of load.sql. */
async function query(sql: string, before = "SET TimeZone = 'UTC'"): Promise<Record<string, unknown>[]> {
  const instance = await DuckDBInstance.create()
  const connection = await instance.connect()
  try {
    await connection.run(`${before}; SET VARIABLE published = '${folder}'`)
    await connection.run(await readFile(join(folder, 'load.sql'), 'utf8'))
    return (await connection.runAndReadAll(sql)).getRowObjectsJson() as Record<string, unknown>[]
  } finally {
    connection.closeSync()
    instance.closeSync()
  }
}

async function get(path: string) {
  const response = await fetch(`${api.url}${path}`)
  expect(response.status, path).toBe(200)
  return response.json()
}

beforeAll(async () => {
  database = await createApiDatabase(config)
  await storeEveryDataset(database.writer, database.registry, NOW)
  await storeQuotes(
    database.writer,
    [1, 2, 3].flatMap((n) => [
      { token: tokenOf(n), at: Date.parse('2024-02-29T23:50:10Z'), price: n, volume_24h: null },
      { token: tokenOf(n), at: Date.parse('2024-02-29T23:51:10Z'), price: 2 * n },
    ]),
  )
  await coverHolders()
  await storePaidFlows()
  api = await startApi({ config, ...database, changeFeed: createHandFeed(), now: () => NOW })
  await run()
})
afterAll(async () => {
  await api?.close()
  await database?.drop()
  await rm(root, { recursive: true, force: true })
})

/** Records the first half of the due hours of March: each token was collected in turn, once a day. */
async function coverHolders(): Promise<void> {
  const begin = toBucket(Date.parse('2024-03-01'), tokenHolders.cadence)
  const half = (toBucket(NOW, tokenHolders.cadence) - begin) / 2
  const report = {
    state: 'stored',
    provider: 'chainbase',
    seconds: 86_400,
    first: begin,
    last: begin + half - 1,
  } as const
  const keys = database.registry.tokens.map(({ key }) => key)
  await addCoverage(
    database.writer,
    tokenHolders,
    keys.map((entity) => ({ entity, ...report })),
  )
}

/** A payment of the treasury with a price, and spam. */
async function storePaidFlows(): Promise<void> {
  const address = (end: string) => `0x${end.padStart(40, '0')}`
  const flow = {
    ...{ dao: database.registry.daoBySlug.get('ens')?.key ?? 0, wallet: address('1'), counterparty: address('2') },
    ...{ at: '2024-03-02T10:00:00.000Z', contract_address: '0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48' },
    ...{ symbol: 'USDC', decimals: 6, base_units: '2500000', kind: 'spending' as const },
  }
  const rows = [toFlow(100, flow), toFlow(101, { ...flow, kind: 'spam', rule: 'zero-quantity', base_units: '0' })]
  await database.writer.insert({ table: 'treasury_flows', rows })
}

const listed = () => database.registry.daos.filter(({ live, token }) => live && token !== null)
const daoAt = (n: number) => {
  const dao = listed()[n]
  if (dao === undefined) throw new Error(`the registry has no DAO ${n}`)
  return dao
}
const tokenAt = (n: number) => {
  const token = database.registry.tokenById.get(daoAt(n).token ?? '')
  if (token === undefined) throw new Error(`the DAO ${n} has no token`)
  return token
}
const tokenOf = (n: number) => tokenAt(n).key

const toNumber = (value: unknown) => (value === null ? null : Number(value))
const toIso = (value: unknown) => new Date(`${String(value).replace(' ', 'T').replace(/\+00$/, '')}Z`).toISOString()
const toDay = (value: unknown) => new Date(String(value)).toISOString()

/** Prices of February that nothing else in this file corrects, with the price that the files have. */
const AT = Date.parse('2024-02-29T23:50:10Z')
const storePrice = (n: number, price: number) =>
  storeQuotes(database.writer, [{ token: tokenOf(n), at: AT, price, volume_24h: null }])
async function readPrice(n: number): Promise<number | null> {
  const [row] = await query(
    `SELECT price FROM prices WHERE interval = '5m' AND token_id = '${tokenAt(n).id}' AND observed_at = '2024-02-29 23:50:10'`,
  )
  return toNumber(row?.price)
}

describe('publish', () => {
  it('writes every dataset with described columns and whole files', async () => {
    const { datasets } = await catalogOf()
    expect(datasets.map(({ name }) => name)).toEqual(published.map(({ name }) => name))
    const empty = datasets.filter(({ partitions }) => partitions.length === 0).map(({ name }) => name)
    expect(empty).toEqual(['tvl', 'index-token'])
    const columns = datasets.flatMap((dataset) => dataset.columns)
    expect(columns.filter(({ type, description }) => type === '' || description === '')).toEqual([])
    expect(await faultsOf()).toEqual([])
  })

  it('has the points of the API for each interval and both months', async () => {
    const found = await partitionsOf('prices')
    expect(new Set(found.map(({ keys }) => keys.interval))).toEqual(new Set(['5m', '30m', '1h', '4h', '1d', '7d']))
    for (const { keys } of found) {
      const from = new Date(Date.UTC(Number(keys.year), Number(keys.month) - 1)).toISOString()
      const to = new Date(Date.UTC(Number(keys.year), Number(keys.month))).toISOString()
      const { id } = tokenAt(2)
      const answer = (await get(
        `/data/tokens/historic-financial?id=${id}&interval=${keys.interval}&start=${from}&end=${to}`,
      )) as { data: { timestamp: string; quote: { USD: Record<string, number | string | null> } }[] }
      const rows = await query(
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
    const dao = daoAt(1)
    const points = (await get(`/data/${path}?id=${dao.id}&limit=1000`)) as Record<string, number | null>[]
    const rows = await query(`SELECT ${column}, dao_name FROM ${name} WHERE dao_id = '${dao.id}' ORDER BY day DESC`)
    expect(rows.map((row) => toNumber(row[column]))).toEqual(points.map((point) => point[member]))
    expect(new Set(rows.map((row) => row.dao_name))).toEqual(new Set([dao.name]))
    expect(points.length).toBeGreaterThan(5)
  })

  it('has the stored share of the due hours of each month, for tokens whose holders are collected in turn', async () => {
    const march = (await partitionsOf('holders')).find(({ keys }) => keys.month === '03')
    expect(march?.coverage.complete).toBe(0.5)
  })

  it('has the assets of treasuries as the API has them', async () => {
    const dao = daoAt(1)
    const records = (await get(`/data/daos/treasury/holdings/historic?id=${dao.id}&limit=10000`)) as Record<
      string,
      string | number | null
    >[]
    const rows = await query(`SELECT * FROM treasury_holdings WHERE dao_id = '${dao.id}'`)
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
    const dao = database.registry.daos.find(({ live, snapshotSpace }) => live && snapshotSpace !== null)
    for (const [name, path] of [
      ['proposals', 'proposals'],
      ['votes', 'votes'],
    ] as const) {
      const records = (await get(`/data/daos/governance/${path}?id=${dao?.id}&source=all&limit=1000`)) as {
        _id: string
      }[]
      const rows = await query(`SELECT ${name.slice(0, -1)}_id AS id FROM ${name} WHERE dao_id = '${dao?.id}'`)
      expect(rows.map(({ id }) => id).sort()).toEqual(records.map(({ _id }) => _id).sort())
      expect(records.length).toBeGreaterThan(3)
    }
  })

  it('has the transfers of treasuries as the API has them, without spam', async () => {
    const dao = database.registry.daoBySlug.get('ens')
    const records = (await get(`/data/daos/treasury/flows?id=${dao?.id}&exact=true&limit=1000`)) as Record<
      string,
      unknown
    >[]
    const rows = await query('SELECT * FROM treasury_flows ORDER BY recorded_at DESC')
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
    const { registry, writer } = database
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
    at += 60_000
    await run()
    const rows = await query('SELECT * FROM delegations ORDER BY recorded_at DESC')
    for (const slug of ['aave', 'uniswap']) {
      const id = registry.daoBySlug.get(slug)?.id
      const records = (await get(`/data/daos/governance/delegations?id=${id}&limit=1000`)) as object[]
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
    const compositions = database.registry.index.compositions.filter(({ validFrom }) => validFrom <= Date.now())
    const rows = await query('SELECT * FROM index_elements ORDER BY valid_from, token_id')
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
    const answered = (await get('/data/index/compositions')) as { _id: string; elements: { quantity: number }[] }[]
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
    for (const { path } of (await partitionsOf('prices')).filter(({ keys }) => keys.interval === '5m')) {
      const rows = await query(`SELECT token_id, timestamp FROM read_parquet('${join(folder, path)}')`)
      const keys = rows.map(({ token_id, timestamp }) => `${token_id} ${timestamp}`)
      expect(keys).toEqual([...keys].sort())
    }
  })

  it('writes nothing when nothing changed', async () => {
    const before = await readTimes()
    at += 60_000
    const { written, unchanged } = await run()
    expect(written).toEqual([])
    expect(unchanged).toBeGreaterThan(20)
    expect(await readTimes()).toEqual(before)
  })

  it('leaves the old publication when it is stopped before the catalog, and goes on from the finished files', async () => {
    const correct = { token: tokenOf(1), at: Date.parse('2024-02-29T23:50:10Z'), price: 7, volume_24h: 5 }
    await storeQuotes(database.writer, [correct])
    const before = await catalogOf()
    const target = openFolder(database.writer, folder)
    const stopped = run({
      target: { ...target, writeText: async () => Promise.reject(new Error('killed')) },
    })
    await expect(stopped).rejects.toThrow('killed')
    expect(await catalogOf()).toEqual(before)
    expect(await faultsOf()).toEqual([])
    const remaining = await readTimes()
    // Of the finished files one was damaged since, with the same size.
    const finished = Object.keys(remaining).filter((path) => /interval=5m.*month=02.*part-\w+\.parquet$/.test(path))
    const damaged = finished.find(
      (path) => !before.datasets.some(({ partitions }) => partitions.some((one) => path.endsWith(one.path))),
    )
    const file = await open(String(damaged), 'r+')
    await file.write(Buffer.from('damaged'), 0, 7, 200)
    await file.close()
    at += 60_000
    const { written } = await run()
    expect(written.length).toBeGreaterThan(5)
    // Each file that was finished is used as it is, except the damaged one.
    expect(written.filter((path) => remaining[join(folder, path)] === undefined)).toEqual([])
    const times = await readTimes()
    const again = written.filter((path) => times[join(folder, path)] !== remaining[join(folder, path)])
    expect(again.map((path) => join(folder, path))).toEqual([damaged])
    expect(await faultsOf()).toEqual([])
    expect(await readPrice(1)).toBe(7)
  })

  it('writes the rows of the version in the catalog if rows are corrected during the publication and taken back', async () => {
    await storePrice(3, 33)
    const target = openFolder(database.writer, folder)
    const changing: Target = {
      ...target,
      writeParquet: async (path, statement) => {
        if (!path.startsWith('prices/interval=5m/year=2024/month=02')) return target.writeParquet(path, statement)
        await storePrice(3, 34)
        try {
          return await target.writeParquet(path, statement)
        } finally {
          await storePrice(3, 33)
        }
      },
    }
    at += 60_000
    await run({ target: changing })
    expect(await faultsOf()).toEqual([])
    at += 60_000
    await run()
    expect(await readPrice(3)).toBe(33)
    at += 60_000
    expect((await run()).written).toEqual([])
  })

  it('writes partitions again whose rows changed between the hash and the file', async () => {
    await storePrice(3, 35)
    const target = openFolder(database.writer, folder)
    let corrections = 0
    const changing: Target = {
      ...target,
      writeParquet: async (path, statement) => {
        if (corrections === 0 && path.startsWith('prices/interval=5m')) {
          corrections += 1
          await storePrice(3, 36)
        }
        return target.writeParquet(path, statement)
      },
    }
    at += 60_000
    await run({ target: changing })
    expect([corrections, await readPrice(3)]).toEqual([1, 36])
    at += 60_000
    expect((await run()).written).toEqual([])
  })

  it('rewrites and reports exactly the partitions of a correction', async () => {
    const before = await catalogOf()
    const corrected = { token: tokenOf(2), at: Date.parse('2024-02-29T23:50:10Z'), price: 9, volume_24h: 5 }
    await storeQuotes(database.writer, [corrected])
    at += 60_000
    const { written } = await run()
    const keys = written.map((path) => path.replace(/\/part-.*/, ''))
    const months = ['5m', '30m', '1h', '4h', '1d', '7d'].map(
      (interval) => `prices/interval=${interval}/year=2024/month=02`,
    )
    expect(keys.sort()).toEqual(months.sort())
    const changed = (await partitionsOf('prices')).filter(({ path }) => written.includes(path))
    expect(changed.every(({ correctedAt }) => correctedAt !== null)).toBe(true)
    // Readers of the older catalog still find its files.
    for (const { path } of before.datasets.flatMap(({ partitions }) => partitions))
      expect((await stat(join(folder, path))).isFile()).toBe(true)
  })

  it('keeps the files beside the data that an older catalog names, and their newest copies', async () => {
    const before = await catalogOf()
    await storePrice(3, 91)
    at += 60_000
    await run()
    const after = await catalogOf()
    const target = openFolder(database.writer, folder)
    const names = ['README.md', 'clickhouse.sql', 'croissant.json', 'load.sql']
    for (const { files } of [before, after]) {
      expect(files.map(({ path }) => path.replace(/-[0-9a-f]{16}/, '')).sort()).toEqual(names)
      for (const { path, ...facts } of files) expect([path, await target.readFacts(path)]).toEqual([path, facts])
    }
    // The README has no names of files.
    const same = before.files.filter(({ path }) => after.files.some((one) => one.path === path))
    expect(same.filter(({ path }) => !path.startsWith('README'))).toEqual([])
    for (const { path, sha256 } of after.files)
      expect((await target.readFacts(path.replace(/-[0-9a-f]{16}/, '')))?.sha256).toBe(sha256)
  })

  it('removes replaced files after the days for which they stay, and never the files of others', async () => {
    const { replaced } = await catalogOf()
    expect(replaced.length).toBeGreaterThan(5)
    expect(replaced.some(({ path }) => path.startsWith('load-'))).toBe(true)
    await writeFile(join(folder, 'mine.parquet'), 'mine')
    at += 8 * 86_400_000
    await run()
    expect((await catalogOf()).replaced).toEqual([])
    const there = Object.keys(await readTimes())
    expect(there.filter((path) => replaced.some((one) => path.endsWith(one.path)))).toEqual([])
    expect(there).toContain(join(folder, 'mine.parquet'))
  })

  it('removes what a killed run left unfinished', async () => {
    const unfinished = join(folder, 'tokens', '.part-0123456789abcdef.parquet.unfinished')
    await writeFile(unfinished, 'PAR1')
    await run()
    await expect(stat(unfinished)).rejects.toThrow('ENOENT')
  })

  describe('that loses its lock while another one publishes a correction', () => {
    /**
     * A database that does not see the end of the lock's statement, like that of a frozen process. `inside` runs within the
     * first data file.
     */
    const unaware = (inside: () => Promise<void>): Database => {
      let files = 0
      return {
        ...database.writer,
        stream: async (statement) => {
          const stream = await database.writer.stream(statement)
          if (statement.name !== 'take lock') {
            files += 1
            return files === 1 ? Readable.from(pausing(stream, inside)) : stream
          }
          const seen = new PassThrough()
          stream.once('data', (chunk) => seen.write(chunk))
          seen.once('close', () => stream.destroy())
          return seen
        },
      }
    }
    async function* pausing(stream: Readable, inside: () => Promise<void>) {
      let at = 0
      for await (const chunk of stream as AsyncIterable<Buffer>) {
        const half = Math.ceil(chunk.length / 2)
        yield chunk.subarray(0, half)
        if (at === 0) await inside()
        at += 1
        yield chunk.subarray(half)
      }
    }
    const killLock = () =>
      database.writer.command({
        name: 'kill',
        sql: 'KILL QUERY WHERE query_id = {id: String} SYNC',
        params: { id: `publish ${database.writer.name}` },
      })

    it.each([
      ['a data file', 92, 92],
      ['the catalog', 93, 94],
      ['the removal of files', 95, 96],
    ] as const)('stops at %s and leaves the publication of the other one', async (step, price, corrected) => {
      await storePrice(3, price)
      const target = openFolder(database.writer, folder)
      let other: Catalog | undefined
      const publishOther = async () => {
        await killLock()
        await storePrice(3, corrected)
        at += 60_000
        await run()
        other = await catalogOf()
      }
      const during = (one: typeof step) => (one === step ? publishOther() : undefined)
      const db = unaware(async () => during('a data file'))
      const folderOfFrozen = openFolder(db, folder)
      const frozen: Target = {
        ...folderOfFrozen,
        readText: async (path) => {
          const found = await target.readText(path)
          if (path === 'README.md') await during('the catalog')
          return found
        },
        listData: async (folders) => {
          await during('the removal of files')
          return target.listData(folders)
        },
      }
      at += 60_000
      await expect(run({ db, target: frozen })).rejects.toThrow(/the lock .* was lost/)
      expect(other).toBeDefined()
      expect(await catalogOf()).toEqual(other)
      expect(await faultsOf()).toEqual([])
      expect(await readPrice(3)).toBe(corrected)
    })
  })

  it('publishes once a day for the scheduler', async () => {
    const options = { db: database.writer, config, registry: database.registry, log: silent, now: () => at }
    const { signal } = new AbortController()
    expect(await publishDaily(options, folder, signal)).toBe(true)
    expect(await publishDaily(options, folder, signal)).toBe(false)
    at += 86_400_000
    expect(await publishDaily(options, folder, signal)).toBe(true)
  })
})

it('tables.sql copies the views of load.sql into a file that other tools open', async () => {
  const file = join(folder, 'dao-data.duckdb')
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
  const views = await readFile(join(folder, 'load.sql'), 'utf8')
  await run(`SET VARIABLE published = '${folder}'`, views, tables, 'SELECT 1')
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
    const child = spawn(process.execPath, ['--input-type=module', '-e', script, folder, sql], {
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
    const { id } = daoAt(1)
    const points = (await get(`/data/${path}?id=${id}&limit=1000`)) as Record<string, string>[]
    const expected = points.map((point) => Object.values(point)[0]?.slice(0, 10)).sort()
    expect(expected).toContain('2024-03-01')
    const days = `SELECT current_setting('TimeZone') AS zone, list(strftime(day, '%Y-%m-%d') ORDER BY day) AS days,
      count(*) FILTER (day = '2024-03-01') AS first FROM ${name} WHERE dao_id = '${id}'`
    expect(await inNewYork(days)).toEqual([{ zone: 'America/New_York', days: expected, first: '1' }])
  })

  it('has days as dates, and times with their time zone', async () => {
    for (const { name, columns, partitions } of (await catalogOf()).datasets.filter(
      (one) => one.partitions.length > 0,
    )) {
      expect(partitions.length).toBeGreaterThan(0)
      const rows = await query(`DESCRIBE ${name.replaceAll('-', '_')}`)
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
    const views = await readFile(join(folder, 'load.sql'), 'utf8')
    await connection.run(views.replaceAll(/^CREATE OR REPLACE VIEW .*?;$/gms, ''))
    expect(await readState()).toEqual(before)
    connection.closeSync()
    instance.closeSync()
  })
})

describe('verify', () => {
  it('finds a flipped byte, a missing file and a wrong row count, and the next run repairs what was deleted', async () => {
    const paths = [...(await partitionsOf('treasury')), ...(await partitionsOf('fees'))].map(({ path }) => path)
    const [flipped = '', missing = '', counted = ''] = paths
    const file = await open(join(folder, flipped), 'r+')
    const { buffer } = await file.read(Buffer.alloc(1), 0, 1, 100)
    await file.write(Buffer.from([(buffer[0] ?? 0) ^ 1]), 0, 1, 100)
    await file.close()
    await rm(join(folder, missing))
    const full = await readFile(join(folder, 'catalog.json'), 'utf8')
    const catalog = JSON.parse(full) as Catalog
    for (const { partitions } of catalog.datasets) for (const one of partitions) if (one.path === counted) one.rows += 1
    await writeFile(join(folder, 'catalog.json'), JSON.stringify(catalog))
    const faults = await faultsOf()
    expect(faults).toHaveLength(3)
    expect(faults).toContainEqual(expect.stringMatching(`^${flipped}: SHA-256`))
    expect(faults).toContain(`${missing}: missing`)
    expect(faults).toContainEqual(expect.stringMatching(`^${counted}: \\d+ rows, the catalog has`))
    await writeFile(join(folder, 'catalog.json'), full)
    await rm(join(folder, flipped))
    const { written } = await run()
    expect([...written].sort()).toEqual([flipped, missing].sort())
    expect(await faultsOf()).toEqual([])
  })

  it('names the folder without a publication', async () => {
    const faults = verify(openFolder(undefined, join(root, 'nothing')))
    await expect(faults.next()).rejects.toThrow(/nothing: no catalog.json there/)
  })
})

describe('npm run publish', () => {
  const start = (...args: string[]) =>
    spawn(process.execPath, [...toProgram(join(import.meta.dirname, '../../workers/publish/main.ts')), ...args], {
      env: { ...process.env, ...toStoreSettings(config) },
    })
  const run = async (...args: string[]) => {
    const child = start(...args)
    const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
    return { code, stdout, stderr }
  }

  it('leaves no catalog when it is killed, publishes when it is repeated, and exits with 1 for a missing file', async () => {
    const to = join(root, 'killed')
    const killed = start('--to', to)
    await once(killed.stderr, 'data')
    killed.kill('SIGKILL')
    await once(killed, 'exit')
    await expect(stat(join(to, 'catalog.json'))).rejects.toThrow('ENOENT')
    // The lock ends with the connection of the killed process, which the database notices a moment later.
    await expect.poll(async () => (await run('--to', to)).code).toBe(0)
    expect(await run('verify', '--from', to)).toMatchObject({ code: 0, stdout: expect.stringMatching(/every file/) })
    const [tokens] = await partitionsOf('tokens')
    await rm(join(to, tokens?.path ?? ''))
    expect(await run('verify', '--from', to)).toMatchObject({ code: 1, stdout: `${tokens?.path}: missing\n` })
  })

  it('names each invalid option', async () => {
    expect(await run('--to', root, '--only', 'nothing')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/--only: there is no dataset "nothing"/),
    })
  })
})

describe('/published', () => {
  it('serves data files with ranges, a strong tag and immutable caching', async () => {
    const [part] = await partitionsOf('tokens')
    const url = `${api.url}/published/${part?.path}`
    const full = await fetch(url)
    expect(full.status).toBe(200)
    expect((await full.arrayBuffer()).byteLength).toBe(part?.bytes)
    expect(full.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
    expect(full.headers.get('access-control-allow-origin')).toBe('*')
    const etag = full.headers.get('etag') ?? ''
    expect(etag).toMatch(/^"[0-9a-f]{16}-\d+"$/)
    const range = await fetch(url, { headers: { range: 'bytes=0-3', 'if-range': etag } })
    expect([range.status, await range.text()]).toEqual([206, 'PAR1'])
    expect((await fetch(url, { headers: { 'if-none-match': etag } })).status).toBe(304)
    const beyond = await fetch(url, { headers: { range: 'bytes=99999999-' } })
    expect([beyond.status, ((await beyond.json()) as { code: string }).code]).toEqual([416, 'range_not_satisfiable'])
  })

  it('answers range requests like the rest of the API', async () => {
    const [part] = await partitionsOf('tokens')
    const bytes = part?.bytes ?? 0
    const send = async (range: string, method = 'GET') => {
      const response = await fetch(`${api.url}/published/${part?.path}`, { method, headers: { range } })
      const { length } = await response.text()
      return [
        response.status,
        response.headers.get('content-range'),
        Number(response.headers.get('content-length')),
        length > 0,
      ]
    }
    expect(await send('bytes=0-3', 'HEAD')).toEqual([200, null, bytes, false])
    for (const ignored of ['bytes=5-1', 'bytes=0-1,3-4', 'items=0-1'])
      expect(await send(ignored), ignored).toEqual([200, null, bytes, true])
    expect(await send(`bytes=-${bytes + 1}`)).toEqual([206, `bytes 0-${bytes - 1}/${bytes}`, bytes, true])
    expect((await send('bytes=-0'))[0]).toBe(416)
    const encoded = await fetch(`${api.url}/published/${part?.path.replaceAll('=', '%3D')}`, { method: 'HEAD' })
    expect(encoded.status).toBe(200)
  })

  it('serves each version of the files beside the data for ever, and their copies with revalidation', async () => {
    for (const { path, bytes } of (await catalogOf()).files) {
      const read = async (name: string) => {
        const answer = await fetch(`${api.url}/published/${name}`)
        return [answer.status, answer.headers.get('cache-control'), (await answer.arrayBuffer()).byteLength]
      }
      expect(await read(path)).toEqual([200, 'public, max-age=31536000, immutable', bytes])
      expect(await read(path.replace(/-[0-9a-f]{16}/, ''))).toEqual([200, 'no-cache', bytes])
    }
  })

  it('serves the catalog with revalidation', async () => {
    const response = await fetch(`${api.url}/published/catalog.json`)
    expect(response.headers.get('cache-control')).toBe('no-cache')
    expect(await response.json()).toEqual(await catalogOf())
    const existing = { headers: { 'if-none-match': response.headers.get('etag') ?? '' } }
    expect((await fetch(`${api.url}/published/catalog.json`, existing)).status).toBe(304)
  })

  it.each([
    '',
    '/',
    '/tokens',
    '/nothing.parquet',
    '/..%2f..%2fetc%2fpasswd',
    '/.hidden',
    '/%00',
    '/%',
    '/a/../catalog.json%00',
  ])('has no file at /published%s', async (path) => {
    const response = await fetch(`${api.url}/published${path}`)
    expect([response.status, response.headers.get('content-type')]).toEqual([
      404,
      'application/problem+json; charset=utf-8',
    ])
  })

  it('is read by ClickHouse through clickhouse.sql', async () => {
    const db = createDatabase(config.clickhouse, 'write')
    try {
      const view = /CREATE OR REPLACE VIEW treasury AS (.*?);/s.exec(
        await readFile(join(folder, 'clickhouse.sql'), 'utf8'),
      )
      const sql = String(view?.[1]).replaceAll('https://data.example', api.url)
      const stream = await db.stream({ name: 'published', sql: `SELECT count() FROM (${sql})`, format: 'TSV' })
      const chunks: Buffer[] = []
      for await (const chunk of stream) chunks.push(chunk as Buffer)
      const rows = (await partitionsOf('treasury')).reduce((sum, one) => sum + one.rows, 0)
      expect(Number(Buffer.concat(chunks))).toBe(rows)
    } finally {
      await db.close()
    }
  })
})

describe('croissant.json', () => {
  it('describes each file and column', async () => {
    const croissant = JSON.parse(await readFile(join(folder, 'croissant.json'), 'utf8'))
    const catalog = await catalogOf()
    const files = catalog.datasets.flatMap(({ partitions }) => partitions)
    const objects = croissant.distribution.filter((one: { '@type': string }) => one['@type'] === 'cr:FileObject')
    expect(objects.map(({ sha256 }: { sha256: string }) => sha256)).toEqual(files.map(({ sha256 }) => sha256))
    expect(croissant.conformsTo).toBe('http://mlcommons.org/croissant/1.0')
  })
})
