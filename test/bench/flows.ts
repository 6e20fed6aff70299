import { DAY_MS } from '../../shared/intervals.ts'
import type { Dao } from '../../shared/registry/entities.ts'
import { storeMarket } from '../support/market.ts'
import { deriveFlowDays } from '../support/stored-flows.ts'
import { withApi } from './api-process.ts'
import { createClient, type RecordedRequest, requireGood, toP95 } from './arrivals.ts'
import { atMost, type BenchContext, type Benchmark, type BenchRow, type Findings } from './define-benchmark.ts'
import { type BenchDatabase, withDatabase, withEngine } from './engine.ts'
import { readCpuSeconds } from './processes.ts'

interface Sizes {
  /** Each DAO has its own transfers, so the first answers of each are not cached. */
  readonly daos: number
  readonly transfers: number
  readonly counterparties: number
}
const FULL: Sizes = { daos: 20, transfers: 100_000, counterparties: 5_000 }
const SMALL: Sizes = { daos: 2, transfers: 2_000, counterparties: 100 }
const DAYS = 365

export const flows: Benchmark = {
  name: 'flows',
  about: 'Treasuries with a year of 100,000 transfers each: the newest and the largest ones, sums and counterparties.',
  run: (context) =>
    withEngine((engine) => withDatabase(engine, 'flows', (database) => measure(database, engine.pid, context))),
}

/** The assets of the transfers: coin, stablecoin, the DAO's own token, and one without a price. */
const ASSETS = [
  ['', 'ETH', 18],
  ['0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48', 'USDC', 6],
  [undefined, 'OWN', 18],
  [`0x${'9'.repeat(40)}`, 'OTHER', 18],
] as const

const toAccount = (number: string) => `concat('0x', leftPad(lower(hex(${number})), 40, '0'))`

/** Stores a year of transfers: 55 % spending, 25 % income, the others of all kinds, in batches of a month as collection stores them. */
async function storeTransfers({ db }: BenchDatabase, dao: Dao, token: string, sizes: Sizes, until: number) {
  const contracts = ASSETS.map(([contract]) => contract ?? token)
  const params = {
    ...{ dao: dao.key, wallet: dao.treasuries[0]?.address.toLowerCase(), until, days: DAYS, ...sizes, contracts },
    ...{ symbols: ASSETS.map(([, symbol]) => symbol), decimals: ASSETS.map(([, , decimals]) => decimals) },
  }
  await db.command({
    name: 'store-flows',
    sql: `INSERT INTO treasury_flows (dao, recorded_at, chain, transaction_hash, contract_address, sender, recipient, base_units, occurrence,
  block_number, symbol, decimals, wallet, counterparty, counterparty_label, direction, leg, kind, rule, category, swap_group, provider)
WITH number AS n, cityHash64({dao: UInt64}, n) AS random, 1 + random % 4 AS asset,
  multiIf(random % 100 < 55, 'spending', random % 100 < 80, 'income', random % 100 < 85, 'internal', random % 100 < 90, 'swap', random % 100 < 95, 'investment', 'spam') AS what,
  multiIf(what = 'internal', 'internal', what = 'swap', 'swap', what = 'spending', 'out', 'in') AS way,
  ${toAccount('1 + cityHash64(n, 2) % {counterparties: UInt32}')} AS other
SELECT {dao: UInt64}, fromUnixTimestamp64Milli({until: Int64} - toInt64((1 - n / {transfers: UInt32}) * {days: UInt32} * 86400) * 1000, 'UTC'),
  'ethereum', concat('0x', lower(hex(SHA256(toString(random))))), {contracts: Array(String)}[asset],
  if(way = 'in', other, {wallet: String}), if(way = 'in', {wallet: String}, other),
  toUInt256(1 + random % 1000000) * toUInt256(exp10({decimals: Array(UInt8)}[asset] - 2)), 0, 18000000 + n,
  {symbols: Array(String)}[asset], {decimals: Array(UInt8)}[asset], {wallet: String}, other, if(random % 7 = 0, 'Somebody', ''),
  way, if(way = 'swap', 'out', ''), what, 'rule', '', '', 'sample'
FROM numbers({transfers: UInt32})`,
    params,
  })
}

async function storePrices({ db }: BenchDatabase, daos: readonly Dao[], until: number): Promise<void> {
  for (const [contract, ,] of ASSETS.slice(0, 2))
    await db.command({
      name: 'store-flows',
      sql: `INSERT INTO holding_prices (dao, contract_address, chain, day, price_usd, collected_at)
SELECT dao, {contract: String}, 'ethereum', toDate(fromUnixTimestamp64Milli({until: Int64}, 'UTC')) - number, 1 + number % 90, now64(3, 'UTC')
FROM (SELECT arrayJoin({daos: Array(UInt64)}) AS dao) AS d CROSS JOIN numbers({days: UInt32} + 1) AS n`,
      params: { contract, until, days: DAYS, daos: daos.map(({ key }) => key) },
    })
}

async function measure(database: BenchDatabase, enginePid: number, { quick, say }: BenchContext): Promise<Findings> {
  const sizes = quick ? SMALL : FULL
  const { registry, db } = database
  const owned = registry.daos.flatMap((dao) => {
    const token = registry.tokens.find((one) => one.dao === dao.slug && one.chain === 'ethereum')
    return token !== undefined && dao.live && dao.treasuries.length > 0 ? [{ dao, token }] : []
  })
  const chosen = owned.slice(0, sizes.daos)
  const until = Math.floor(Date.now() / DAY_MS) * DAY_MS
  say(`storing ${sizes.transfers} transfers of each of ${chosen.length} DAOs`)
  for (const { dao, token } of chosen) await storeTransfers(database, dao, token.contractAddress, sizes, until)
  await db.command({ name: 'merge', sql: 'OPTIMIZE TABLE treasury_flows FINAL' })
  for (const { dao } of chosen)
    await db.command({
      name: 'store-again',
      sql: `INSERT INTO treasury_flows SELECT * REPLACE(collected_at + 1 AS collected_at) FROM treasury_flows
WHERE dao = {dao: UInt64} AND recorded_at >= fromUnixTimestamp64Milli({until: Int64}, 'UTC') - INTERVAL 3 DAY`,
      params: { dao: dao.key, until },
    })
  await deriveFlowDays(
    db,
    chosen.map(({ dao }) => dao.key),
  )
  await storePrices(
    database,
    chosen.map(({ dao }) => dao),
    until,
  )
  await storeMarket(db, { keys: chosen.map(({ token }) => token.key), until, points: DAYS, stepMs: DAY_MS })
  return withApi(database, {}, async (api) => {
    const client = createClient(api.url, 0)
    const rows: BenchRow[] = []
    const body: string[][] = []
    const measured = [
      ['newest transfers', 'flows', '', 50],
      ['sums by month', 'flows/historic', '&interval=1M', 50],
      ['sums by month and kind, of the same days', 'flows/historic', '&interval=1M&by=kind', 50],
      ['largest payments', 'flows', '&kind=spending&sort=-valueUsd&limit=10', undefined],
      ['counterparties', 'flows/counterparties', '', undefined],
    ] as const
    try {
      // The first answer of a route prepares its code.
      for (const [, route, more] of measured)
        await requireGood(client, `/data/daos/treasury/${route}?id=${owned.at(-1)?.dao.id}${more}`)
      for (const [what, route, more, most] of measured) {
        say(what)
        const before = [api.pid, enginePid].map(readCpuSeconds)
        const taken: RecordedRequest[] = []
        for (const { dao } of chosen)
          taken.push(await requireGood(client, `/data/daos/treasury/${route}?id=${dao.id}${more}`))
        const used = [api.pid, enginePid].map((pid, at) => readCpuSeconds(pid) - (before[at] ?? 0))
        body.push([what, ...used.map((seconds) => ((1000 * seconds) / chosen.length).toFixed(0))])
        const a = { name: `${chosen.length} requests, p95`, value: toP95(taken), unit: 'ms' }
        rows.push({ what, a, ...(most === undefined ? {} : { target: atMost(most, ' ms') }) })
      }
    } finally {
      client.disconnect()
    }
    return {
      rows,
      tables: [
        {
          title: 'Processor time of a request',
          head: ['what', 'API, ms CPU/req', 'ClickHouse, ms CPU/req'],
          body,
        },
      ],
      notes: [
        `${sizes.transfers.toLocaleString('en-US')} transfers of a year of each of ${chosen.length} DAOs in four assets, three of which have daily prices, merged except for the last three days, which are stored twice, with ${sizes.counterparties.toLocaleString('en-US')} counterparties; one client, which asks for each DAO once, so that nothing of an answer is cached unless the row says so.`,
      ],
    }
  })
}
