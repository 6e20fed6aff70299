import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { parse } from 'csv-parse/sync'
import { describe, expect, it, vi } from 'vitest'
import { parseConfig } from '../../shared/config/config.ts'
import type { VotingDao } from '../../shared/datasets/governance.ts'
import { DataError } from '../../shared/errors.ts'
import { HOUR_MS, INTERVAL_SECONDS, type Interval, toBucketStart } from '../../shared/intervals.ts'
import type { Token } from '../../shared/registry/entities.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import type { Database } from '../../shared/store/store.ts'
import type { HttpClients } from '../../workers/http/client.ts'
import type { Entity, Job } from '../../workers/job/define-job.ts'
import daos from '../../workers/jobs/daos.ts'
import dexTrades from '../../workers/jobs/dex-trades.ts'
import discord from '../../workers/jobs/discord.ts'
import governance from '../../workers/jobs/governance.ts'
import governors from '../../workers/jobs/governors.ts'
import holders from '../../workers/jobs/holders.ts'
import prices from '../../workers/jobs/prices.ts'
import ratings from '../../workers/jobs/ratings.ts'
import telegram from '../../workers/jobs/telegram.ts'
import treasury from '../../workers/jobs/treasury.ts'
import tvl from '../../workers/jobs/tvl.ts'
import twitter from '../../workers/jobs/twitter.ts'
import twitterSentiment from '../../workers/jobs/twitter-sentiment.ts'
import type { TreasuryDao } from '../../workers/providers/contracts/treasury-daos.ts'
import { collect } from '../../workers/run/collect.ts'
import { checkRows } from '../../workers/run/runner.ts'
import { toTestDao, toTestToken } from '../samples.ts'
import { countCases, SEED } from '../support/cases.ts'
import { createState } from '../support/run.ts'
import { silent } from '../support/silent.ts'
import type { Provider } from '../upstream/exchange.ts'
import { encodeVote } from '../upstream/governor-logs.ts'
import { createLoggedChain } from '../upstream/logged-chain.ts'
import { coingecko } from '../upstream/providers/coingecko.ts'
import { coinmarketcap } from '../upstream/providers/coinmarketcap.ts'
import { defillama } from '../upstream/providers/defillama.ts'
import { defillamaCoins } from '../upstream/providers/defillama-coins.ts'
import { discord as discordStandIn } from '../upstream/providers/discord.ts'
import { ethplorer } from '../upstream/providers/ethplorer.ts'
import { goldrush } from '../upstream/providers/goldrush.ts'
import { moralis } from '../upstream/providers/moralis.ts'
import { rpc } from '../upstream/providers/rpc.ts'
import { snapshot } from '../upstream/providers/snapshot.ts'
import { telegramBot, telegram as telegramStandIn } from '../upstream/providers/telegram.ts'
import { x } from '../upstream/providers/x.ts'
import { createRecordedWorld } from '../upstream/recorded.ts'
import { readSwaps } from '../upstream/recorded-swaps.ts'
import { toStandInSettings } from '../upstream/settings.ts'
import { createSimulatedWorld } from '../upstream/simulated.ts'
import { hashOf } from '../upstream/small-chain.ts'
import type { World } from '../upstream/world.ts'

// Calls of a node are repeated after a pause.
vi.mock('../../workers/http/limits.ts', async (original) => ({ ...(await original<object>()), sleep: async () => {} }))

const dir = process.env.UPSTREAM_DATA_DIR ?? resolve(import.meta.dirname, '../../../shared/data')
const isAbsent = !existsSync(join(dir, 'INDEX.md'))
if (isAbsent) console.log(`damaged recordings are not tested: there are none in ${dir}`)

const NOW = Date.parse('2024-05-06T07:05:09Z')
const DAY = 86_400_000
const registry = loadRegistry()
const world = createSimulatedWorld(registry, 1)
const STAND_INS: readonly Provider[] = [
  ...[coinmarketcap, coingecko, defillama, defillamaCoins, goldrush, moralis, ethplorer],
  ...[snapshot, x, discordStandIn, telegramStandIn, telegramBot, rpc],
]

/** A seeded random number in [0, 1). */
function createRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

type Json = null | boolean | number | string | Json[] | { [name: string]: Json }
/** A list or map whose elements may be damaged. */
type Elements = Json[] | { [name: string]: Json }

const isMap = (value: unknown): value is { [name: string]: Json } =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Replaces every number by an impossible one. */
function toAbsurd(value: Json): Json {
  if (typeof value === 'number') return 1e40
  if (typeof value === 'string' && /^0x[0-9a-f]+$/i.test(value)) return toAbsurdHex(value)
  if (typeof value === 'string' && value !== '' && Number.isFinite(Number(value))) return '1e40'
  if (typeof value === 'string' && value.includes('<')) return value.replace(/(?<=>)[^<>]*\d[^<>]*/, '1e40')
  if (Array.isArray(value)) return value.map(toAbsurd)
  return isMap(value) ? Object.fromEntries(Object.entries(value).map(([name, one]) => [name, toAbsurd(one)])) : value
}

/** Quantities and data get the largest value of their length. Addresses and hashes have no absurd value. */
const toAbsurdHex = (text: string) => ([42, 66].includes(text.length) ? text : text.replaceAll(/(?<!^)[0-9a-f]/gi, 'f'))

/** Removes one member or element. */
function withoutMember(value: Json, random: () => number): Json {
  if (Array.isArray(value)) return value.slice(1)
  if (!isMap(value)) return null
  const names = Object.keys(value)
  const gone = names[Math.floor(random() * names.length)]
  return Object.fromEntries(Object.entries(value).filter(([name]) => name !== gone))
}

const DAMAGES = ['null', 'text', 'number', 'empty', 'absurd', 'member', 'duplicate', 'truncated'] as const
type Damage = (typeof DAMAGES)[number]
/** Damages that destroy the element and must be reported. A number in place of another number may be right. */
const REPORTED: ReadonlySet<Damage> = new Set(['null', 'text', 'number', 'empty', 'absurd'])

/** Returns whether the element is destroyed. */
function damageOne(elements: Elements, at: number, damage: Damage, random: () => number): boolean {
  const names = Object.keys(elements)
  const name = names[at] ?? ''
  const own = Array.isArray(elements) ? (elements[at] ?? null) : (elements[name] ?? null)
  const put = (value: Json) => void Reflect.set(elements, name, value)
  if (damage === 'null') put(null)
  if (damage === 'text') put('nonsense')
  if (damage === 'number') put(7)
  if (damage === 'empty') put(Array.isArray(own) ? [] : {})
  if (damage === 'absurd') put(toAbsurd(own))
  if (damage === 'member') put(withoutMember(own, random))
  if (damage === 'duplicate' && Array.isArray(elements)) elements.splice(at, 0, structuredClone(own))
  if (damage === 'truncated') {
    if (Array.isArray(elements)) elements.splice(at)
    else for (const gone of names.slice(at)) delete elements[gone]
  }
  return REPORTED.has(damage) && !(damage === 'number' && typeof own === 'number')
}

/** The job, provider and entities of a test, and the damageable lists of a response. */
interface Case {
  readonly name: string
  readonly job: Job
  readonly provider: string
  readonly entities: readonly Entity[]
  readonly range?: { readonly from: number; readonly to: number; readonly interval: Interval }
  readonly slot?: number
  readonly now?: number
  /** The world of the stand-in; by default, a simulated one. */
  readonly world?: World
  /**
   * The damageable lists of a response; empty if the response must stay unchanged. `full` has the response as its only
   * element: the response about one entity. A page of text is the list of its lines.
   */
  elements(answer: Json, path: string, full: Json[]): readonly Elements[]
  /** Members whose values come from the nearest of several elements. */
  readonly approximate?: readonly string[]
  /** Whether a response is about one entity, so that the response is itself an element. */
  readonly isComplete?: boolean
  /** Changes the response of the stand-in before it is damaged. */
  change?(answer: Json, path: string): void
  /** Replaces the response of the stand-in. */
  answer?(path: string): Json
  /** Replaces JSON by lines of text. */
  readonly text?: readonly string[]
  readonly settings?: Readonly<Record<string, string>>
  /** Stored rows that the provider reads. */
  readonly stored?: readonly object[]
}

interface Hit {
  readonly list: number
  readonly at: number
  readonly damage: Damage
}

interface Outcome {
  /** The content of the rows by key: a row, or one element of a row's list. */
  readonly parts: ReadonlyMap<string, string>
  /** The reasons in the answers of the entities, from which their coverage is recorded. */
  readonly reports: readonly string[]
  readonly isDestroyed: boolean
  /** The number of damageable elements of each list, over all responses. */
  readonly sizes: readonly number[]
}

async function run(input: Case, hit: Hit | undefined, random: () => number): Promise<Outcome> {
  const { job, now = NOW } = input
  const { slot = toBucketStart(now, job.cadence), range } = input
  const sizes: number[] = []
  let isDestroyed = false
  const damage = (answer: Json, path: string): Json => {
    const full = [structuredClone(answer)]
    for (const elements of input.elements(full[0] ?? null, path, full)) {
      sizes.push(Object.keys(elements).length)
      if (hit?.list === sizes.length - 1) isDestroyed = damageOne(elements, hit.at, hit.damage, random)
    }
    return full[0] ?? null
  }
  const config = parseConfig({ ...toStandInSettings('http://stand-in'), ...input.settings })
  const http = createHttp(input, now, damage)
  const db = { rows: async () => input.stored ?? [] } as unknown as Database
  const collector = job
    .connect({ config, http, db, log: silent, now: () => now })
    .find(({ provider }) => provider === input.provider)
  if (collector === undefined) throw new Error(`${job.name} has no provider ${input.provider}`)
  const entities = input.entities.filter(collector.covers)
  const collected = await collect(
    [collector],
    {
      entities,
      peers: { all: entities, own: entities },
      entityColumn: job.dataset.entity,
      slot,
      range,
      answersFrom: range === undefined && !job.resumes ? slot - INTERVAL_SECONDS[job.cadence] * 1000 : undefined,
      timeColumn: job.dataset.series.time,
      resumes: job.resumes,
      state: createState(),
      signal: new AbortController().signal,
      redact: (text) => text,
      check: (provider, candidates) => checkRows(job.dataset, provider, candidates, { now, log: silent }),
    },
    silent,
  )
  const rows = collected.results.flatMap((one) => one.rows)
  const compared = rows.map((row) => toApproximate(row, input.approximate ?? []))
  const parts = new Map<string, string>()
  // Duplicate rows are stored as one.
  for (const [key, text] of new Map(compared.flatMap(toParts).map((part) => [part.join(), part])).values())
    parts.set(key, (parts.get(key) ?? '') + text)
  const observed = collected.answers.all().flatMap(({ reason, omitted }) => [reason, omitted])
  return { parts, reports: observed.filter((text) => text !== ''), sizes, isDestroyed }
}

/** Rows that record the state of a reading instead of content. */
const MARKERS: ReadonlySet<unknown> = new Set(['reading', 'sweep'])

/** Members whose values come from the nearest of several elements: only whether they are known is compared. */
function toApproximate(row: object, members: readonly string[]): object {
  const values = members.map((member) => [member, Reflect.get(row, member) === null ? null : 'known'])
  return { ...row, ...Object.fromEntries(values) }
}

/**
 * Splits rows into independent parts: a snapshot of a treasury is a list of parts, but one of holders is not, because the
 * sum of their shares needs all of them. The voting period and the text of a proposal are part of the proposal.
 */
function toParts(row: object): [string, string][] {
  const observed = row as Readonly<Record<string, unknown>>
  const { space, proposal, kind, address } = observed
  if (MARKERS.has(kind)) return []
  const time = observed.observed_at ?? observed.traded_at
  const vote = kind === 'vote' ? [address] : []
  const what = kind === 'times' || kind === 'text' ? 'proposal' : kind
  const event = [observed.transaction_hash, observed.log_index, what, space, proposal]
  const key = [observed.token, observed.dao, time, ...event, ...vote].filter((part) => part !== undefined)
  const list = observed.holdings
  if (!Array.isArray(list)) return [[key.join(' '), JSON.stringify(row)]]
  return list.map((one: Readonly<Record<string, unknown>>) => {
    const { address, chain, contract, symbol } = one
    return [[...key, address, chain, contract, symbol].join(' '), JSON.stringify(one)]
  })
}

function createHttp(input: Case, now: number, damage: (answer: Json, path: string) => Json): HttpClients {
  const settings = (baseUrl: string) => new URL(baseUrl).pathname
  return {
    open: ({ baseUrl, headers = {} }) => {
      const send = async (request: { path: string; query?: object; body?: unknown; method?: string }) => {
        const url = new URL(`http://stand-in${settings(baseUrl)}${request.path}`)
        for (const [name, value] of Object.entries(request.query ?? {}))
          if (value !== undefined) url.searchParams.set(name, String(value))
        const provider = STAND_INS.find(({ name }) => url.pathname.startsWith(`/${name}/`))
        if (provider === undefined) throw new Error(`no stand-in for ${url.pathname}`)
        const lower = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const)
        return provider.handle(
          {
            method: request.method ?? 'GET',
            path: url.pathname.slice(provider.name.length + 1),
            query: url.searchParams,
            headers: Object.fromEntries(lower),
            body: request.body === undefined ? '' : JSON.stringify(request.body),
            now,
            plan: 'open',
          },
          input.world ?? world,
        )
      }
      return {
        async json(request) {
          const recorded = input.answer?.(request.path)
          if (recorded !== undefined) return damage(recorded, request.path)
          const { status, body } = await send(request)
          if (request.absent?.includes(status)) return undefined
          if (status >= 400 && !request.answers?.includes(status))
            throw new DataError('provider_rejected', `${request.path}: ${status} ${body}`, { status })
          const answer = JSON.parse(body) as Json
          input.change?.(answer, request.path)
          return damage(answer, request.path)
        },
        async text(request) {
          const [header = '', ...lines] = input.text ?? (await send(request)).body.split('\n')
          const damaged = damage(lines, request.path)
          return Array.isArray(damaged) ? [header, ...damaged].join('\n') : String(damaged)
        },
      }
    },
  }
}

const TRIES = countCases(9)

/** Damages one element at a time, at seeded random positions. */
async function expectRestIntact(input: Case, count = TRIES): Promise<void> {
  const random = createRandom([...input.name].reduce((sum, letter) => sum * 31 + letter.charCodeAt(0), SEED))
  const full = await run(input, undefined, random)
  expect(full.parts.size, 'rows of the undamaged answer').toBeGreaterThan(1)
  const lists = full.sizes.flatMap((size, list) => (size > 1 || input.isComplete ? [{ size, list }] : []))
  expect(lists.length, 'lists to damage').toBeGreaterThan(0)
  for (let tries = 0; tries < count; tries += 1) {
    const { size, list } = lists[Math.floor(random() * lists.length)] ?? { size: 1, list: 0 }
    // Truncation removes only the last element of a list.
    const damage = DAMAGES[tries % DAMAGES.length] ?? 'null'
    const at = damage === 'truncated' ? size - 1 : Math.floor(random() * size)
    const hit: Hit = { list, at, damage }
    const observed = `${damage} at ${at} of list ${list}`
    const { parts, reports, isDestroyed } = await run(input, hit, random)
    const lost = [...full.parts].filter(([key, text]) => parts.get(key) !== text).map(([key]) => key)
    expect(lost.length, `${observed}: lost or changed ${lost.slice(0, 3).join(', ')}`).toBeLessThanOrEqual(
      damage === 'duplicate' ? 0 : 1,
    )
    if (lost.length > 0 && isDestroyed) expect(reports, `${observed}: ${lost.join(', ')}`).not.toEqual([])
  }
}

const dataOf = (answer: Json): Json => (isMap(answer) ? (answer.data ?? null) : null)
const at = (value: Json | undefined, ...path: string[]): Json | undefined =>
  path.reduce<Json | undefined>(
    (found, name) => (isMap(found ?? null) ? (found as { [n: string]: Json })[name] : undefined),
    value,
  )
const lists = (...found: (Json | undefined)[]): Elements[] =>
  found.filter((one): one is Elements => typeof one === 'object' && one !== null)

const entitiesOf = (job: Job, count = 12) => job.entities(registry).slice(0, count)
const treasuries = treasury.entities(registry) as readonly TreasuryDao[]
const withWallets = treasuries.filter(({ wallets }) => wallets.length > 0)
const lastDays = (days: number, interval: Interval = '1d') => {
  const to = toBucketStart(NOW, '1d')
  return { from: to - days * DAY, to, interval }
}

const lastHours = (hours: number) => {
  const to = toBucketStart(NOW, '1h')
  return { from: to - hours * HOUR_MS, to, interval: '1h' as const }
}

/** Votes and proposals. A full page that is cut short looks like the last page, and the rest is read in the next run. */
const toSnapshotLists = (answer: Json) =>
  lists(at(answer, 'data', 'votes'), at(answer, 'data', 'proposals')).filter((one) => Object.values(one).length < 1000)

const toLogLists = (answer: Json, path: string) => (path === '#eth_getLogs' ? lists(at(answer, 'result')) : [])

const STAND_IN_CASES: readonly Case[] = [
  {
    name: 'CoinMarketCap, latest quotes',
    ...{ job: prices, provider: 'coinmarketcap', entities: entitiesOf(prices) },
    elements: (answer) => lists(dataOf(answer)),
  },
  {
    name: 'CoinMarketCap, history',
    ...{ job: prices, provider: 'coinmarketcap', entities: entitiesOf(prices, 3), range: lastDays(20) },
    elements: (answer) => lists(...Object.values(dataOf(answer) ?? {}).map((coin: Json) => at(coin, 'quotes'))),
  },
  {
    name: 'CoinMarketCap, links',
    ...{ job: daos, provider: 'coinmarketcap', entities: entitiesOf(daos) },
    elements: (answer) => lists(dataOf(answer)),
  },
  {
    name: 'CoinGecko, markets',
    ...{ job: prices, provider: 'coingecko', entities: entitiesOf(prices) },
    elements: (answer) => lists(answer),
  },
  {
    name: 'CoinGecko, charts',
    ...{ job: prices, provider: 'coingecko', entities: entitiesOf(prices, 3), range: lastDays(20) },
    elements: (answer) => lists(at(answer, 'prices'), at(answer, 'market_caps'), at(answer, 'total_volumes')),
  },
  {
    name: 'DefiLlama, protocols',
    ...{ job: tvl, provider: 'defillama', entities: entitiesOf(tvl) },
    elements: (answer) => lists(answer),
  },
  {
    name: 'DefiLlama, histories of protocols',
    ...{ job: tvl, provider: 'defillama', entities: entitiesOf(tvl, 3), range: lastDays(20) },
    elements: (answer) => lists(at(answer, 'tvl')),
  },
  {
    name: 'DefiLlama, newest amounts of treasuries',
    ...{ job: treasury, provider: 'defillama', entities: withWallets.slice(0, 2) },
    elements: (answer) =>
      Object.values(at(answer, 'chainTvls') ?? {}).flatMap((chain: Json) => {
        const newest = (at(chain, 'tokens') as Json[]).at(-1)
        return lists(at(newest, 'tokens'))
      }),
  },
  {
    name: 'GoldRush, balances',
    ...{ job: treasury, provider: 'goldrush', entities: withWallets.slice(0, 3) },
    elements: (answer, path) => (path.includes('balances') ? lists(at(answer, 'data', 'items')) : []),
  },
  {
    name: 'Moralis, owners',
    ...{ job: holders, provider: 'moralis', entities: entitiesOf(holders, 3) },
    elements: (answer) => lists(at(answer, 'result')),
  },
  {
    name: 'Moralis, swaps',
    ...{ job: dexTrades, provider: 'moralis-swaps', entities: entitiesOf(dexTrades, 3) },
    ...{ settings: { RPC_URLS: '' } },
    elements: (answer) => lists(at(answer, 'result')),
  },
  {
    name: 'Ethplorer, holders',
    ...{ job: holders, provider: 'ethplorer', entities: entitiesOf(holders, 3) },
    elements: (answer) => lists(at(answer, 'holders')),
  },
  {
    name: 'GoldRush, day by day',
    ...{ job: treasury, provider: 'goldrush', entities: withWallets.slice(0, 1), range: lastDays(5) },
    elements: (answer, path) =>
      path.includes('portfolio')
        ? lists(...Object.values(at(answer, 'data', 'items') ?? {}).map((item: Json) => at(item, 'holdings')))
        : [],
  },
  {
    name: 'X, counts of accounts',
    ...{ job: twitter, provider: 'x', entities: entitiesOf(twitter) },
    elements: (answer) => lists(dataOf(answer)),
  },
  {
    name: 'Snapshot, votes and proposals',
    ...{ job: governance, provider: 'snapshot', entities: entitiesOf(governance, 2) },
    elements: toSnapshotLists,
  },
  {
    name: 'Discord, invites',
    ...{ job: discord, provider: 'discord', entities: entitiesOf(discord), isComplete: true },
    elements: (answer, _path, full) => [full, ...lists(answer)],
  },
  {
    name: 'Telegram, preview pages',
    ...{ job: telegram, provider: 'telegram', entities: entitiesOf(telegram), isComplete: true },
    elements: (answer, _path, full) => [full, ...lists(answer)],
  },
  {
    name: 'Telegram, counts of the bot',
    ...{ job: telegram, provider: 'telegram-bot', entities: entitiesOf(telegram), isComplete: true },
    elements: (answer, _path, full) => [full, ...lists(answer)],
  },
  {
    name: 'X, posts',
    ...{ job: twitterSentiment, provider: 'x', entities: entitiesOf(twitterSentiment) },
    elements: (answer) => lists(dataOf(answer)),
  },
  {
    name: 'a node, logs of governors',
    ...{ job: governors, provider: 'ethereum', entities: entitiesOf(governors, 1) },
    elements: toLogLists,
  },
  {
    name: 'a node, swap logs',
    approximate: ['amount_usd', 'price'],
    ...{ job: dexTrades, provider: 'ethereum', entities: entitiesOf(dexTrades, 2), range: lastHours(2) },
    elements: toLogLists,
  },
  {
    name: 'a node, replies of a batch',
    ...{ job: dexTrades, provider: 'ethereum', entities: entitiesOf(dexTrades, 2), range: lastHours(2) },
    elements: (answer, path) => (Array.isArray(answer) && path !== '#eth_call' ? [answer] : []),
  },
  {
    name: 'DefiLlama, current prices of coins',
    // A price is that of all addresses with the coin.
    ...{ job: treasury, provider: 'goldrush', entities: withWallets.filter(({ wallets }) => wallets.length === 1) },
    // The first holding keeps its value, so that the value of the treasury is known.
    change: (answer, path) => {
      if (!path.includes('balances')) return
      for (const item of (at(answer, 'data', 'items') as { quote: Json }[]).slice(1)) item.quote = null
    },
    elements: (answer, path) => (path.startsWith('/prices/current') ? lists(at(answer, 'coins')) : []),
  },
  {
    name: 'DefiLlama, past prices of coins',
    ...{ job: treasury, provider: 'goldrush', entities: withWallets.slice(0, 1), range: lastDays(5) },
    elements: (answer, path) =>
      path === '/batchHistorical'
        ? lists(...Object.values(at(answer, 'coins') ?? {}).map((coin: Json) => at(coin, 'prices')))
        : [],
  },
  {
    name: 'DefiLlama, charts of coins',
    approximate: ['amount_usd', 'price'],
    ...{
      job: dexTrades,
      provider: 'ethereum',
      range: lastHours(2),
      settings: { RPC_URLS: 'arbitrum=http://stand-in/rpc/arbitrum' },
    },
    entities: dexTrades
      .entities(registry)
      .filter((token) => (token as Token).chain === 'arbitrum')
      .slice(0, 2),
    elements: (answer, path) =>
      path.startsWith('/chart/')
        ? lists(...Object.values(at(answer, 'coins') ?? {}).map((coin: Json) => at(coin, 'prices')))
        : [],
  },
  {
    name: 'the ratings file',
    ...{ job: ratings, provider: 'ratings-file', entities: entitiesOf(ratings, 8) },
    ...{ settings: { RATINGS_SOURCE: 'http://stand-in/ratings.csv' } },
    stored: ratings.entities(registry).map((dao) => ({ ...dao })),
    text: [
      'dao,overallRating,fundamentalRating,governance,team,competitiveMoat,valueProposition,tokenEconomics,lastUpdated,source',
      ...ratings
        .entities(registry)
        .slice(0, 8)
        .map(({ id }) => `${id},70,64,60,61,62,63,64,2024-03-01,somebody`),
    ],
    elements: (answer) => lists(answer),
  },
]

const chartsOf = (folder: string) =>
  readdirSync(join(dir, folder)).filter((file) => file.endsWith('.json') && file !== 'assets.json')
const readJson = (path: string): Json => JSON.parse(readFileSync(join(dir, path), 'utf8')) as Json
const readGzip = (path: string): Json => JSON.parse(gunzipSync(readFileSync(join(dir, path))).toString()) as Json
const bodyOf = (file: string): Json => {
  const [recording] = readJson(`fixtures-coingecko/coingecko_ruby/${file}.json`) as { response: { body: Json } }[]
  return recording?.response.body ?? null
}

function toChartCase(name: string, chart: Json): Case {
  const times = (at(chart, 'prices') as [number, number][]).map(([ms]) => ms)
  const range = { from: Math.min(...times), to: Math.max(...times) + 1, interval: '1d' as const }
  return {
    ...{ name: `CoinGecko, ${name}`, job: prices, provider: 'coingecko', range, now: range.to + DAY },
    entities: [toTestToken(1, { coingeckoId: 'bitcoin' })],
    answer: () => chart,
    elements: (answer) => lists(at(answer, 'prices'), at(answer, 'market_caps'), at(answer, 'total_volumes')),
  }
}

function toListingCase(file: string, now: number): Case {
  const answer = readJson(`fixtures-coinmarketcap/${file}`)
  const ids = Object.values(dataOf(answer) ?? {}).map((coin: Json) => Number(at(coin, 'id')))
  return {
    ...{ name: `CoinMarketCap, ${file}`, job: prices, provider: 'coinmarketcap', now },
    entities: ids.map((id) => toTestToken(id, { cmcId: String(id) })),
    answer: () => answer,
    elements: (found) => lists(dataOf(found)),
  }
}

function toTvlCase(file: string): Case {
  const history = readGzip(`defillama-protocols-tvl-bma-d/protocol_tvl/${file}`)
  return {
    ...{ name: `DefiLlama, ${file}`, job: tvl, provider: 'defillama', entities: [toTestDao(1, 'drift')] },
    ...{ range: { from: 0, to: Date.UTC(2026, 0, 1), interval: '1d' }, now: Date.UTC(2026, 0, 1) },
    answer: () => history,
    elements: (answer) => lists(at(answer, 'tvl')),
  }
}

/** The recording has no slugs, so they are derived from the names. */
function toProtocolsCase(): Case {
  const recorded = readGzip('defillama-protocols-tvl-bma-d/lite-protocols2_2025-12-19.json.gz') as {
    [name: string]: Json
  }[]
  const answer = recorded.map((one) => ({ ...one, slug: String(one.name).toLowerCase().replaceAll(' ', '-') }))
  const slugs = [...new Set(answer.slice(0, 300).map(({ slug }) => slug))]
  return {
    ...{ name: 'DefiLlama, protocols', job: tvl, provider: 'defillama' },
    entities: slugs.map((slug, key) => toTestDao(key + 1, slug)),
    answer: () => answer.slice(0, 300),
    elements: (found) => lists(found),
  }
}

function toEthplorerCase(): Case {
  const file = readJson('fixtures-ethplorer-openbb/uni_getTopTokenHolders_getTokenInfo_2022-01-31.json')
  return {
    ...{ name: 'Ethplorer, holders of UNI', job: holders, provider: 'ethplorer' },
    entities: [toTestToken(1, {}), toTestToken(2, {})],
    answer: (path) => findWith(file, path.includes('Holders') ? 'holders' : 'holdersCount'),
    elements: (answer) => lists(at(answer, 'holders')),
  }
}

/** Returns the object with a member of that name, at any depth. */
function findWith(value: Json, name: string): Json {
  if (isMap(value) && name in value) return value
  const inner = typeof value === 'object' && value !== null ? Object.values(value) : []
  for (const one of inner) {
    const found = findWith(one as Json, name)
    if (found !== null) return found
  }
  return null
}

/** Votes and proposals of recorded spaces. */
function toSnapshotCase(): Case {
  const recorded = createRecordedWorld(registry, dir)
  const now = Date.UTC(2026, 4, 1)
  const isRecorded = (dao: VotingDao) => ['comp-vote.eth', 'lido-snapshot.eth'].includes(dao.snapshotSpace)
  return {
    ...{ name: 'Snapshot, votes and proposals', job: governance, provider: 'snapshot', world: recorded, now },
    entities: governance.entities(registry).filter((dao) => isRecorded(dao as VotingDao)),
    elements: toSnapshotLists,
  }
}

/** Swaps of UNI in three hours of June 2021. */
function toSwapsCase(): Case {
  const recorded = createRecordedWorld(registry, dir)
  const times = (readSwaps(dir) ?? []).map(({ at: seconds }) => seconds * 1000)
  const from = toBucketStart(
    times.reduce((least, time) => Math.min(least, time)),
    '1h',
  )
  return {
    ...{ name: 'a node, swap logs', job: dexTrades, provider: 'ethereum', world: recorded, now: from + DAY },
    ...{ range: { from, to: from + 3 * HOUR_MS, interval: '1h' }, approximate: ['amount_usd', 'price'] },
    entities: dexTrades.entities(registry).filter((token) => (token as Token).symbol === 'UNI'),
    elements: toLogLists,
  }
}

/** Votes on one proposal of Uniswap's governor, as logs. */
function toGovernorCase(): Case {
  const file = gunzipSync(readFileSync(join(dir, 'governance-dao-node/uniswap_83_VoteCast.csv.gz')))
  const rows: Readonly<Record<string, string>>[] = parse(file, { columns: true })
  const uniswap = registry.daos.filter(({ slug }) => slug === 'uniswap')
  const address = uniswap[0]?.governors.find(({ family }) => family === 'bravo')?.address ?? ''
  const logs = rows.map(({ voter = '', proposal_id = '', support, votes = '', reason, ...row }) => ({
    ...{ address, ...encodeVote(voter, BigInt(proposal_id), Number(support), BigInt(votes), reason) },
    ...{ blockNumber: Number(row.block_number), logIndex: Number(row.log_index), transactionIndex: 0 },
    transactionHash: hashOf(Number(`${row.block_number}${row.log_index}`)),
  }))
  const now = Date.UTC(2025, 3, 1)
  const last = 22_200_000
  const times = new Map([12_000_000, last].map((block) => [block, now / 1000 - (last - block) * 12]))
  const chain = createLoggedChain({ logs, times, pools: [] })
  return {
    ...{ name: 'a node, votes on a governor', job: governors, provider: 'ethereum', now, entities: uniswap },
    world: { ...world, chain: () => chain },
    elements: toLogLists,
  }
}

/** Recorded posts, as the answer to each search. */
function toPostsCase(): Case {
  const [recording] = readJson('fixtures-twitter-tweepy/test_client_search_recent_tweets.json') as {
    response: { body: Json }
  }[]
  return {
    ...{ name: 'X, posts', job: twitterSentiment, provider: 'x', entities: entitiesOf(twitterSentiment, 3) },
    answer: () => recording?.response.body ?? null,
    elements: (answer) => lists(dataOf(answer)),
  }
}

const recordedCases = (): Case[] => [
  toSnapshotCase(),
  toSwapsCase(),
  toGovernorCase(),
  toPostsCase(),
  toListingCase('listings_latest_2022-12-16.json', Date.UTC(2022, 11, 16, 23)),
  toListingCase('quotes_latest_v1_by_id_2019-02-04.json', Date.UTC(2019, 1, 4, 23)),
  ...chartsOf('coingecko-market_chart-2022-defi_etf').map((file) =>
    toChartCase(file, readJson(`coingecko-market_chart-2022-defi_etf/${file}`)),
  ),
  ...['minutely', 'hourly', 'daily'].map((step) => toChartCase(step, bodyOf(`${step}_historical_prices_for_one_coin`))),
  ...readdirSync(join(dir, 'defillama-protocols-tvl-bma-d/protocol_tvl')).slice(0, 6).map(toTvlCase),
  toProtocolsCase(),
  toEthplorerCase(),
]

describe.skipIf(isAbsent)('a damaged element of a recorded response loses only itself and is reported', () => {
  it.each(isAbsent ? [] : recordedCases())('$name', (input) => expectRestIntact(input, TRIES / 3))
})

describe('a damaged element of a stand-in response loses only itself and is reported', () => {
  it.each(STAND_IN_CASES)('$name', (input) => expectRestIntact(input))
})
