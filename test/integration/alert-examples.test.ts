import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { storeRegistry } from '../../clickhouse/registry.ts'
import { DAY_MS, HOUR_MS } from '../../shared/intervals.ts'
import { createDatabase, type Database } from '../../shared/store/store.ts'
import { evaluateGroup, toGroups } from '../../workers/alerts/evaluation.ts'
import type { Rule } from '../../workers/alerts/rules.ts'
import { parseRules } from '../../workers/alerts/rules-file.ts'
import { type AlertStage, openAlertStage } from '../support/alerts.ts'
import { createHandFeed, type HandFeed, startApi, type TestApi } from '../support/api.ts'
import { storeQuotes } from '../support/quotes.ts'
import { silent } from '../support/silent.ts'

const PAGE = readFileSync(join(import.meta.dirname, '../../docs/alerts.md'), 'utf8')
const [, examples = ''] = PAGE.split('## Ten examples')
const [own = ''] = examples.split('## Channels')
const given = [...own.matchAll(/```yaml\n(.*?)```/gs)].flatMap(([, text = '']) => parse(text) as { name: string }[])

let stage: AlertStage
let reader: Database
let api: TestApi
let feed: HandFeed
beforeAll(async () => {
  stage = await openAlertStage()
  const { config, database, registry, clock } = stage
  await storeRegistry(database.db, registry, silent)
  reader = createDatabase(config.clickhouse, 'read')
  feed = createHandFeed()
  api = await startApi({ config, db: reader, registry, changeFeed: feed, now: () => clock.now })
})
afterAll(async () => {
  await api?.close()
  await reader?.close()
  await stage?.close()
})

const iso = (ms: number) => new Date(ms).toISOString()
const dao = (slug: string) => stage.registry.daoBySlug.get(slug) ?? expect.fail(slug)
const tokenOf = (slug: string) => stage.registry.tokenById.get(dao(slug).token ?? '') ?? expect.fail(slug)
const insert = (table: string, ...rows: object[]) => stage.database.db.insert({ table, rows })

const quote = async (slug: string, price: number) => {
  await storeQuotes(stage.database.db, [
    { token: tokenOf(slug).key, at: stage.clock.now - 1_000, price, is_latest: true },
  ])
  feed.commit('prices')
}

const holdings = async (daysAgo: number, quantity: number) => {
  const { now } = stage.clock
  const tokens = [{ symbol: 'USDC', quantity, value_usd: quantity }]
  await insert('dao_treasuries', {
    ...{
      dao: dao('uniswap').key,
      observed_at: iso(now - (now % DAY_MS) - daysAgo * DAY_MS),
      value_usd: quantity,
      tokens,
    },
    ...{ source: 'goldrush', collected_at: iso(now) },
  })
  feed.commit('treasury')
}

const proposal = (
  id: string,
  times: { created: number; starts: number; ends: number; settled?: boolean; flagged?: boolean },
) =>
  insert('governance_in', {
    ...{ dao: dao('uniswap').key, space: 'uniswap', kind: 'proposal', proposal: id, address: `0x${'1'.repeat(40)}` },
    ...{
      at: iso(times.created),
      title: `Proposal ${id}`,
      voting_type: 'basic',
      choices: ['For'],
      scores: [1],
      scores_total: 1,
    },
    ...{
      scores_state: times.settled ? 'final' : 'pending',
      votes: 1,
      quorum: null,
      url: null,
      is_flagged: times.flagged ?? false,
    },
    ...{ starts_at: iso(times.starts), ends_at: iso(times.ends), collected_at: iso(stage.clock.now) },
  })

const vote = (id: string, voter: string) =>
  insert('governance_in', {
    ...{
      dao: dao('uniswap').key,
      space: 'uniswap',
      kind: 'vote',
      proposal: id,
      address: voter,
      at: iso(stage.clock.now),
    },
    ...{ choice: '1', voting_power: 1, collected_at: iso(stage.clock.now) },
  })

/** What must not fire the example, and then what must. */
interface Scenario {
  readonly before: () => Promise<unknown>
  readonly quiet?: () => Promise<unknown>
  readonly after: () => Promise<unknown>
  readonly title: RegExp
}

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  'uni-above-10': {
    before: () => quote('uniswap', 9),
    quiet: () => quote('uniswap', 9.9),
    after: () => quote('uniswap', 11),
    title: /: Price above \$10$/,
  },
  'dex-moves': {
    before: () => quote('uniswap', 100),
    quiet: () => quote('uniswap', 105),
    after: () => quote('uniswap', 120),
    title: /: Price \+\d+\.\d % within 1 d$/,
  },
  'large-treasuries': {
    before: () => quote('uniswap', 9).then(() => holdings(0, 5e8)),
    quiet: () => holdings(0, 6e8),
    after: () => holdings(0, 2e9),
    title: /: entered the list of DAOs$/,
  },
  'new-proposals': {
    before: () =>
      proposal('old', { created: stage.clock.now - HOUR_MS, starts: stage.clock.now, ends: stage.clock.now + DAY_MS }),
    after: () =>
      proposal('new', { created: stage.clock.now, starts: stage.clock.now, ends: stage.clock.now + 9 * DAY_MS }),
    title: /: new proposal$/,
  },
  'vote-reminder': {
    before: () =>
      proposal('long', { created: stage.clock.now, starts: stage.clock.now, ends: stage.clock.now + 9 * DAY_MS }),
    quiet: async () => {
      await proposal('voted', {
        created: stage.clock.now,
        starts: stage.clock.now,
        ends: stage.clock.now + 20 * HOUR_MS,
      })
      await vote('voted', `0x${'0'.repeat(38)}aa`)
    },
    after: () =>
      proposal('soon', { created: stage.clock.now, starts: stage.clock.now, ends: stage.clock.now + 20 * HOUR_MS }),
    title: /: vote ends soon$/,
  },
  results: {
    before: async () => undefined,
    quiet: () =>
      proposal('result', { created: stage.clock.now, starts: stage.clock.now, ends: stage.clock.now, settled: false }),
    after: () =>
      proposal('result', { created: stage.clock.now, starts: stage.clock.now, ends: stage.clock.now, settled: true }),
    title: /: vote ended$/,
  },
  'treasury-spends': {
    before: () => holdings(1, 3e9),
    quiet: () => holdings(0, 4e9),
    after: () => holdings(0, 1e9),
    title: /: treasury spent \$2,000,000,000 of USDC$/,
  },
  'prices-stale': {
    before: () => quote('uniswap', 9),
    after: async () => {
      stage.clock.now += HOUR_MS
    },
    title: /^Dataset prices: stale$/,
  },
  'prices-corrected': {
    before: async () => undefined,
    after: () =>
      insert('history_changes', {
        ...{
          dataset: 'prices',
          entity: tokenOf('uniswap').key,
          job: 'prices-history',
          changed_at: iso(stage.clock.now),
        },
        ...{ begins_at: iso(stage.clock.now - DAY_MS), ends_at: iso(stage.clock.now) },
      }),
    title: /^Dataset prices: history was corrected$/,
  },
  'provider-fails': {
    before: async () => undefined,
    quiet: () => fail(10 * 60_000),
    after: () => fail(2 * HOUR_MS),
    title: /^Provider coingecko fails for prices$/,
  },
}

const fail = (forMs: number) =>
  insert('job_state', {
    ...{ job: 'prices', name: 'failing providers', written_at: iso(stage.clock.now) },
    value: JSON.stringify({ coingecko: { since: iso(stage.clock.now - forMs), reason: 'status 503' } }),
  })

async function evaluate(rule: Rule) {
  const [group] = toGroups([rule]).values()
  if (group === undefined) throw new Error('no group')
  const { database, registry, store, clock } = stage
  const fired = await evaluateGroup(group, { db: database.db, store, registry, apiUrl: api.url, now: clock.now })
  return fired.map(({ title }) => title)
}

describe('an example of docs/alerts.md', () => {
  it('is executed by this test', () => {
    expect(given.map(({ name }) => name)).toEqual(Object.keys(SCENARIOS))
    expect(given).toHaveLength(10)
  })

  it.each(Object.keys(SCENARIOS))('fires when its condition becomes true, and only then: %s', async (name) => {
    const scenario = SCENARIOS[name] ?? expect.fail(name)
    const rules = given.filter((one) => one.name === name)
    const channels = { hook: { type: 'slack', url: 'https://hooks.example.org' } }
    const [rule] = parseRules(JSON.stringify({ channels, rules }), 'alerts.json', () => undefined).rules
    if (rule === undefined) throw new Error('no rule')
    // A day later the data of the other examples is history.
    stage.clock.now += 2 * DAY_MS
    await scenario.before()
    expect(await evaluate(rule)).toEqual([])
    stage.clock.now += 300_000
    await scenario.quiet?.()
    expect(await evaluate(rule)).toEqual([])
    stage.clock.now += 300_000
    await scenario.after()
    expect(await evaluate(rule)).toEqual([expect.stringMatching(scenario.title)])
    stage.clock.now += 1_000
    expect(await evaluate(rule)).toEqual([])
  })
})

describe('a proposal that Snapshot flagged', () => {
  it('fires like others, with the mark in its title', async () => {
    const { now } = stage.clock
    const rule = { name: 'flagged', what: { kind: 'proposal', on: 'created' }, who: { names: ['uniswap'] } }
    const [parsed] = parseRules(JSON.stringify({ rules: [rule] }), 'alerts.json', () => undefined).rules
    if (parsed === undefined) throw new Error('no rule')
    expect(await evaluate(parsed)).toEqual([])
    stage.clock.now += 60_000
    await proposal('spam', { created: now + 30_000, starts: now, ends: now + DAY_MS, flagged: true })
    expect(await evaluate(parsed)).toEqual([
      expect.stringMatching(/: new proposal \(flagged by Snapshot as spam or a scam\)$/),
    ])
  })
})
