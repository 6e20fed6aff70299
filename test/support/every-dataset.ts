import type { Dao, VotingToken } from '../../shared/registry/entities.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { Database } from '../../shared/store/store.ts'
import { storeMarket } from './market.ts'
import { storeQuotes } from './quotes.ts'
import { storeFlowRows, storeReadDays, toFlow } from './stored-flows.ts'

const DAY = 86_400_000

/** The number of tokens and DAOs with data. */
const ENTITIES = 12

const address = (n: number) => `0x${n.toString(16).padStart(40, '0')}`

/** A trade every 20 minutes, five per block; the last two of a block share a transaction. */
function toTrade(token: number, n: number, now: number) {
  const block = Math.floor(n / 5)
  return {
    token,
    traded_at: new Date(now - block * 20 * 60_000).toISOString(),
    transaction_hash: `0x${(n % 5 === 4 ? n - 1 : n).toString(16).padStart(64, '0')}`,
    log_index: n % 7,
    chain: 'ethereum',
    block_number: 1_000_000 - block,
    pool: address(n % 3),
    exchange: 'uniswap',
    taker: address(n),
    side: n % 2 === 0 ? 'BUY' : 'SELL',
    amount: 1 + n / 3,
    amount_usd: n % 4 === 0 ? null : n * 1.1,
    price: n % 4 === 0 ? null : 3.3,
  }
}

async function storeTokens(db: Database, keys: readonly number[], now: number): Promise<void> {
  await storeMarket(db, { keys, until: now - 60_000, points: 40, stepMs: 300_000 })
  // Every third token has no market cap, and two of the others have the same.
  const caps = keys.map((_, index) => (index % 3 === 0 ? null : 1e9 / 3 + Math.floor(index / 2)))
  const latest = keys.map((token, index) => ({
    token,
    at: now - 30_000,
    is_latest: true,
    market_cap: caps[index] ?? null,
  }))
  await storeQuotes(db, latest)
  const holders = (n: number) => [
    { address: address(n), amount: 1e6 / 3, amount_usd: null, share: 12.5 },
    { address: address(n + 1), amount: 0.1, amount_usd: 7.25, share: 0 },
  ]
  const observed_at = new Date(now - 3_600_000).toISOString()
  const snapshots = keys.flatMap((token, n) =>
    Array.from({ length: 6 }, (_, ago) => ({
      ...{ token, observed_at: new Date(now - 3_600_000 - ago * DAY).toISOString() },
      ...{ total_holders: 5 + n + ago, top100_share: 12.5, holders: holders(n) },
    })),
  )
  await db.insert({ table: 'token_holders', rows: snapshots })
  const windows = ['24h', '7d', '30d', 'max'].flatMap((name) => [
    [`inflow_${name}`, 1.5],
    [`outflow_${name}`, 0.25],
  ])
  const sums = keys.map((token, n) => ({
    ...{ token, total_trades: 40 + n, makers: 3, takers: 9, dexs: 1, price: n % 2 === 0 ? null : 1e-7 },
    ...Object.fromEntries(windows),
    ...{ last_trade_at: observed_at, as_of: observed_at },
  }))
  await db.insert({ table: 'dex_data', rows: sums })
  await db.insert({
    table: 'dex_trades',
    rows: keys.flatMap((key) => Array.from({ length: 43 }, (_, n) => toTrade(key, n, now))),
  })
}

/** Holdings of a stablecoin at two addresses, of an asset without a price, and of one known only by its symbol. */
function toHoldings(value: number) {
  const usdc = '0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48'
  const one = { chain: 'ethereum', address: address(1), contract: usdc, symbol: 'A"B', price_source: 'goldrush' }
  return [
    { ...one, quantity: 1, value_usd: value / 2, kind: 'stable' },
    { ...one, address: address(2), quantity: 0.5, value_usd: value / 2, kind: 'stable' },
    {
      ...one,
      contract: address(3),
      symbol: 'LP,2',
      quantity: 1e8 / 7,
      value_usd: null,
      price_source: null,
      kind: 'other',
    },
    { ...one, chain: 'moon', address: null, contract: address(4), quantity: 1e-7, value_usd: 0, kind: 'other' },
    { ...one, chain: 'OwnTokens', address: null, contract: null, quantity: 3, value_usd: 0, kind: 'own' },
  ]
}

async function storeDaos(db: Database, keys: readonly number[], now: number): Promise<void> {
  const midnight = now - (now % DAY)
  const at = (ago: number) => new Date(midnight - ago * DAY).toISOString()
  const days = (count: number) => Array.from({ length: count }, (_, ago) => ago).filter((ago) => ago !== 3)
  const each = <T>(count: number, row: (dao: number, ago: number) => T) =>
    keys.flatMap((dao) => days(count).map((ago) => row(dao, ago)))
  const members = (dao: number, ago: number) => ({
    ...{ dao, observed_at: at(ago), active_members: ago % 2 === 0 ? null : 7, total_members: 1_000 - ago },
  })
  const tokens = [
    { symbol: 'A"B', quantity: 1.5, value_usd: 10 },
    { symbol: 'LP,2', quantity: 123_456_789.123_456_79, value_usd: null },
  ]
  const scores = { overall_rating: 70, fundamental_rating: 61.5, governance: 1, team: 2, competitive_moat: 3 }
  const tables: Record<string, object[]> = {
    twitter_counts: each(9, (dao, ago) => ({
      dao,
      observed_at: at(ago),
      followers: 900 - ago,
      following: 5,
      tweets: null,
    })),
    discord_members: each(9, members),
    telegram_members: each(9, members),
    twitter_sentiment: each(9, (dao, ago) => ({
      ...{
        dao,
        observed_at: at(ago),
        positive_posts: ago % 3,
        neutral_posts: 1,
        negative_posts: ago % 2,
        lexicon: 'test-1',
      },
    })),
    dao_treasuries: each(9, (dao, ago) => ({
      ...{ dao, observed_at: at(ago), value_usd: 10 + ago, tokens, holdings: toHoldings(10 + ago), spam_count: 2 },
      source: 'goldrush',
    })),
    dao_fees: each(40, (dao, ago) => ({
      ...{ dao, observed_at: new Date(midnight - ago * DAY - 1).toISOString(), fees_usd: 1e6 / 3 + ago },
      revenue_usd: ago % 10 === 4 ? null : 1e5 - ago,
    })),
    dao_ratings: keys.map((dao) => ({
      ...{ dao, observed_at: at(0), rated_at: at(30), ...scores, value_proposition: 4, token_economics: 5 },
      ...{ source: 'Somebody', report_url: null },
    })),
  }
  for (const [table, rows] of Object.entries(tables)) await db.insert({ table, rows })
}

/** A rule that fired for a token, and one without a firing. */
async function storeAlerts(db: Database, { tokens }: Registry, now: number): Promise<void> {
  const [token] = tokens
  const at = new Date(now - 60_000).toISOString()
  const rule = { revision: 'a', kind: 'level', state: 'active', began_at: at, description: 'A "level" & more' }
  await db.insert({
    table: 'alert_rules',
    rows: ['prices-stale', 'uni-above-10'].map((name) => ({ ...rule, rule: name })),
  })
  const about = { entity_type: 'token', entity_id: token?.id, entity_name: token?.name, value: 1.5, threshold: 1 }
  const firing = (number: number, facts: object) => ({
    ...{ rule: 'prices-stale', id: String(number).padStart(24, '0'), revision: 'a', subject: '', kind: 'level' },
    ...{
      firing_count: number,
      holds: true,
      fired_at: at,
      title: `Alert <${number}>`,
      text: 'A "text" & more',
      unit: 'USD',
    },
    ...{
      entity_type: '',
      entity_id: '',
      entity_name: '',
      observed_at: null,
      value: null,
      before: null,
      threshold: null,
    },
    ...{ page: '/', request: '/data/status', channels: [], due_at: at, is_digest: false, ...facts },
  })
  await db.insert({
    table: 'alert_firings',
    rows: [firing(1, about), firing(2, { unit: '', page: null }), ...[3, 4, 5].map((n) => firing(n, {}))],
  })
}

/** Proposals and votes of DAOs with a space: in every state, with choices of every form, and with unknown values. */
async function storeGovernance(db: Database, daos: readonly Dao[], now: number): Promise<void> {
  const at = (days: number) => new Date(now - (now % 1000) + days * DAY).toISOString()
  const rows = daos.flatMap(({ key: dao, snapshotSpace: space }) => {
    const common = { dao, space, proposal: '', address: '' }
    const proposals = [-40, -1, 1, 2, 3].map((start, n) => ({
      ...{ ...common, kind: 'proposal', proposal: `0x${n}`, address: address(n), at: at(start - 2) },
      ...{ title: n === 1 ? 'Say "yes", or no' : `Proposal ${n}`, voting_type: 'basic', choices: ['For', 'Against'] },
      ...{ scores: n === 0 ? [0.1, 2] : [], scores_total: n === 0 ? 2.1 : null, votes: 5, quorum: null },
      ...{ starts_at: at(start), ends_at: at(start + 3), url: n === 0 ? null : 'https://snapshot.box/#/s:x' },
    }))
    // The text of one is empty, and those of two are unknown.
    const texts = ['# Summary\n\n**Yes** or no?\u2028', '', '<b>"Text"</b>, of several\nlines'].map((body, n) => ({
      ...{ ...common, kind: 'text', proposal: `0x${n}`, at: at([-40, -1, 1][n] ?? 0), body },
    }))
    const choices = ['1', '[2,1]', '{"1":0.5,"2":1}', '"0xsecret"', 'null']
    const votes = choices.map((choice, n) => ({
      ...{ ...common, kind: 'vote', proposal: `0x${n % 2}`, address: address(n), at: at(-n / 8 - 0.5) },
      ...{ choice, voting_power: n === 4 ? null : 10 / 3 ** n },
    }))
    return [...proposals, ...texts, ...votes, { ...common, kind: 'reading', at: at(0) }]
  })
  await db.insert({ table: 'governance_in', rows })
}

/** A delegate of Aave and Uniswap in `storeEveryDataset`. */
export const DELEGATE = `0x${'3'.repeat(40)}`

/** Delegations of a DAO, which gets a voting token: five delegates, of which one has many changes of its power. */
async function storeDelegations(db: Database, dao: Dao | undefined, now: number): Promise<void> {
  if (dao === undefined) return
  const place = { chain: 'ethereum', address: `0x${'1'.repeat(40)}`, fromBlock: 0, space: 'eip155:1:0x1' }
  const token: VotingToken = { ...place, family: 'votes', decimals: 18, quorums: [] }
  dao.votingToken = token
  const at = (hours: number) => new Date(now - hours * 3_600_000).toISOString()
  const log = (n: number) => ({ dao: dao.key, space: token.space, at: at(20 - n), block_number: n, log_index: n })
  const tx = `0x${'2'.repeat(64)}`
  const units = (n: number) => String(BigInt(n) * 10n ** 18n)
  const power = (delegate: string, n: number) => ({
    ...{ ...log(n), tx, kind: 'power', delegate, previous: units(n - 1), power: units(n), decimals: 18 },
    cause: 'transfer',
  })
  const others = [1, 2, 4, 5].map((n) => address(n))
  const delegation = (delegate: string, n: number) => ({
    ...{ ...log(10 + n), tx, kind: 'delegation', delegator: address(n), to_delegate: delegate },
  })
  await db.insert({
    table: 'delegations_in',
    rows: [
      { ...log(19), kind: 'reading' },
      ...[1, 2, 3, 4, 5].map((n) => power(DELEGATE, n)),
      ...others.map((delegate) => power(delegate, 1)),
      ...[DELEGATE, ...others].map((delegate, n) => delegation(delegate, n)),
    ],
  })
}

/** Stores rows of every dataset that is served as records, with nulls, ties, gaps and texts that need quoting. */
/** Transfers of a treasury: payments with and without a price, and a label with quotes. */
async function storeFlows(db: Database, dao: number, now: number): Promise<void> {
  const rows = Array.from({ length: 9 }, (_, n) =>
    toFlow(n, {
      ...{
        dao,
        wallet: address(1),
        counterparty: address(20 + (n % 7)),
        at: new Date(now - n * 5 * DAY).toISOString(),
      },
      ...{ kind: n % 2 === 0 ? 'spending' : 'income', base_units: `${n + 1}${'0'.repeat(17)}` },
      ...{ counterparty_label: n % 3 === 0 ? 'A "label", quoted' : '', decimals: n === 8 ? null : 18 },
      ...(n % 4 === 0 ? { contract_address: address(3), symbol: 'LP,2' } : {}),
    }),
  )
  await storeFlowRows(db, rows)
  const midnight = now - (now % DAY)
  await storeReadDays(db, dao, midnight - 60 * DAY, midnight)
}

export async function storeEveryDataset(db: Database, registry: Registry, now: number): Promise<void> {
  const daos = registry.daos.filter(({ live, token }) => live && token !== null).slice(0, ENTITIES)
  const tokens = daos.map(({ token }) => registry.tokenById.get(token ?? '')?.key ?? 0)
  await storeTokens(db, tokens, now)
  await storeDaos(
    db,
    daos.map(({ key }) => key),
    now,
  )
  await storeFlows(db, registry.daoBySlug.get('ens')?.key ?? 0, now)
  await storeAlerts(db, registry, now)
  for (const slug of ['aave', 'uniswap']) await storeDelegations(db, registry.daoBySlug.get(slug), now)
  await storeGovernance(
    db,
    registry.daos.filter(({ live, snapshotSpace }) => live && snapshotSpace !== null).slice(0, ENTITIES),
    now,
  )
  const computed_at = new Date(now).toISOString()
  const sums = Array.from({ length: 8 }, (_, ago) => ({
    recorded_at: new Date(now - (now % DAY) - ago * DAY).toISOString(),
    ...{ value_usd: 1e12 + ago + 0.123456, member_count: 100 - ago, computed_at, withdrawn: 0 },
  }))
  for (const table of ['market_caps', 'treasury_values']) await db.insert({ table, rows: sums })
  const { index } = registry
  const slots = Array.from({ length: 30 }, (_, n) => now - (now % 300_000) - n * 300_000)
  const points = slots.map((at, n) => ({
    ...{ index_key: index.key, created_at: new Date(at).toISOString(), observed_at: new Date(at).toISOString() },
    ...{ value_usd: 100 + n / 7, composition: index.compositions[0]?.id, is_retracted: 0, computed_at },
  }))
  await db.insert({ table: 'index_points', rows: points })
}
