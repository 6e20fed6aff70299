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

/** A proposal in a timelock: its vote is over, and its details are collected after it. */
const queued = async (
  id: string,
  { outcome = 'queued', executable, expires }: { outcome?: string; executable: number; expires?: number },
) => {
  const { now } = stage.clock
  await proposal(id, { created: now - 3 * DAY_MS, starts: now - 2 * DAY_MS, ends: now - DAY_MS, settled: true })
  await insert('dao_proposal_details', {
    ...{ dao: dao('uniswap').key, space: 'uniswap', proposal: id, title: `Proposal ${id}`, outcome },
    ...{ queued_at: iso(now), executable_at: iso(executable), collected_at: iso(now + 1) },
    ...{
      canceled_at: outcome === 'canceled' ? iso(now) : null,
      expires_at: expires === undefined ? null : iso(expires),
    },
  })
}

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

/** A proposal with a quorum, of which each choice has some power; its space was just read. */
const ofQuorum = async (
  id: string,
  {
    ends,
    quorum,
    scores = [1],
    hours = 60,
    more = {},
  }: { ends: number; quorum: number | null; scores?: number[]; hours?: number; more?: object },
) => {
  const { now } = stage.clock
  const starts = ends - hours * HOUR_MS
  await proposal(id, { created: starts, starts, ends })
  await insert('dao_proposal_details', {
    ...{
      dao: dao('uniswap').key,
      space: 'uniswap',
      proposal: id,
      title: `Proposal ${id}`,
      choices: ['For', 'Against'],
      scores,
    },
    ...{
      starts_at: iso(starts),
      ends_at: iso(ends),
      quorum,
      scores_state: 'pending',
      collected_at: iso(now + 1),
      ...more,
    },
  })
  await insert('governance_readings', { dao: dao('uniswap').key, space: 'uniswap', read_at: iso(now) })
}

const cast = (id: string, voter: string, choice: string, power: number, hoursAgo = 0) =>
  insert('governance_in', {
    ...{ dao: dao('uniswap').key, space: 'uniswap', kind: 'vote', proposal: id, address: `0x${voter.repeat(40)}` },
    ...{
      at: iso(stage.clock.now - hoursAgo * HOUR_MS),
      choice,
      voting_power: power,
      collected_at: iso(stage.clock.now),
    },
  })

let changes = 0
const movePower = (from: number, to: number) =>
  insert('delegations_in', {
    ...{ dao: dao('uniswap').key, space: dao('uniswap').votingToken?.space, kind: 'power', at: iso(stage.clock.now) },
    ...{ block_number: ++changes, delegate: `0x${'d'.repeat(40)}`, decimals: 18, collected_at: iso(stage.clock.now) },
    ...{ previous: `${from}${'0'.repeat(24)}`, power: `${to}${'0'.repeat(24)}` },
  })

/** The data of an example: `before` and `quiet` must not fire it, `after` must. */
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
  'quorum-short': {
    before: () => ofQuorum('far', { ends: stage.clock.now + 5 * DAY_MS, quorum: 10 }),
    quiet: async () => {
      await ofQuorum('enough', { ends: stage.clock.now + 20 * HOUR_MS, quorum: 10, scores: [4, 6] })
      await ofQuorum('without', { ends: stage.clock.now + 20 * HOUR_MS, quorum: null })
    },
    after: () => ofQuorum('short', { ends: stage.clock.now + 20 * HOUR_MS, quorum: 10, scores: [4, 5] }),
    title: /: quorum is not reached, and the vote ends soon$/,
  },
  'turned-votes': {
    before: async () => {
      await ofQuorum('turned', { ends: stage.clock.now + 30 * HOUR_MS, quorum: null })
      await cast('turned', '1', '1', 10, 20)
    },
    quiet: () => cast('turned', '2', '2', 5),
    after: () => cast('turned', '3', '2', 6),
    title: /: leading choice changed$/,
  },
  // The quorum is 40 million.
  'power-moves': {
    before: () => movePower(10, 11),
    quiet: () => movePower(11, 13),
    after: () => movePower(13, 15),
    title: /: a delegate gained 12\.5 % of the quorum$/,
  },
  'execution-reminder': {
    before: () => queued('later', { executable: stage.clock.now + 2 * DAY_MS }),
    quiet: () => queued('gone', { outcome: 'canceled', executable: stage.clock.now + 10 * HOUR_MS }),
    after: () => queued('next', { executable: stage.clock.now + 10 * HOUR_MS }),
    title: /: proposal executable soon$/,
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
    expect(given).toHaveLength(14)
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

describe('a queued proposal', () => {
  it('fires as canceled or expired in its timelock, and then no longer as queued', async () => {
    stage.clock.now += 2 * DAY_MS
    const { now } = stage.clock
    const toRule = (on: string) => {
      const rule = { name: `is-${on}`, what: { kind: 'proposal', on }, who: { names: ['uniswap'] } }
      const [parsed] = parseRules(JSON.stringify({ rules: [rule] }), 'alerts.json', () => undefined).rules
      return parsed ?? expect.fail(on)
    }
    const [canceled, expired, isQueued] = ['canceled', 'expired', 'queued'].map(toRule) as [Rule, Rule, Rule]
    for (const rule of [canceled, expired, isQueued]) expect(await evaluate(rule)).toEqual([])
    stage.clock.now += 60_000
    await queued('stopped', { outcome: 'canceled', executable: now + DAY_MS })
    await queued('left', { executable: now - DAY_MS, expires: now + 5 * 60_000 })
    expect(await evaluate(canceled)).toEqual([expect.stringMatching(/: proposal canceled$/)])
    expect(await evaluate(expired)).toEqual([])
    stage.clock.now += 10 * 60_000
    expect(await evaluate(expired)).toEqual([expect.stringMatching(/: proposal expired$/)])
    expect(await evaluate(isQueued)).toEqual([])
    await queued('waiting', { executable: now + 2 * DAY_MS })
    expect(await evaluate(isQueued)).toEqual([expect.stringMatching(/: proposal queued$/)])
  })
})

describe('a canceled proposal', () => {
  /** A proposal whose vote ends 30 seconds from now. */
  const canceled = async (id: string, at: number) => {
    const { now } = stage.clock
    const [starts, ends] = [now - DAY_MS, now + 30_000]
    await proposal(id, { created: starts, starts, ends, settled: true })
    await insert('dao_proposal_details', {
      ...{ dao: dao('uniswap').key, space: 'uniswap', proposal: id, title: `Proposal ${id}`, outcome: 'canceled' },
      ...{ starts_at: iso(starts), ends_at: iso(ends), canceled_at: iso(at), collected_at: iso(now + 1) },
    })
  }

  it('has no end of its vote if it was canceled before, and has one if it was canceled later', async () => {
    stage.clock.now += 2 * DAY_MS
    const rule = { name: 'is-ended', what: { kind: 'proposal', on: 'ended' }, who: { names: ['uniswap'] } }
    const [parsed] = parseRules(JSON.stringify({ rules: [rule] }), 'alerts.json', () => undefined).rules
    if (parsed === undefined) return expect.fail('a rule is needed')
    expect(await evaluate(parsed)).toEqual([])
    const { now } = stage.clock
    await canceled('canceled while voting', now + 10_000)
    stage.clock.now += 60_000
    expect(await evaluate(parsed)).toEqual([])
    await canceled('canceled while queued', stage.clock.now + 50_000)
    stage.clock.now += 60_000
    expect(await evaluate(parsed)).toEqual([expect.stringMatching(/: vote ended$/)])
  })
})

describe('a proposal without its quorum', () => {
  const toRule = (hours: number) => {
    const rule = {
      name: `short-${hours}`,
      what: { kind: 'proposal', on: 'ending', hours, quorumShort: true },
      who: { names: ['uniswap'] },
    }
    const [parsed] = parseRules(JSON.stringify({ rules: [rule] }), 'alerts.json', () => undefined).rules
    return parsed ?? expect.fail(rule.name)
  }
  const SHORT = [expect.stringMatching(/: quorum is not reached, and the vote ends soon$/)]

  it('fires once in the last hours, a short one in the second half of its vote, and not with old votes', async () => {
    stage.clock.now += 2 * DAY_MS
    const rule = toRule(24)
    expect(await evaluate(rule)).toEqual([])
    const ends = stage.clock.now + 25 * HOUR_MS
    await ofQuorum('one', { ends, quorum: 10 })
    await ofQuorum('short vote', { ends: stage.clock.now + 21 * HOUR_MS, quorum: 10, hours: 40 })
    expect(await evaluate(rule)).toEqual([])
    stage.clock.now += 2.5 * HOUR_MS
    expect(await evaluate(rule)).toEqual([])
    await ofQuorum('one', { ends, quorum: 10, scores: [3] })
    expect(await evaluate(rule)).toEqual([...SHORT, ...SHORT])
    stage.clock.now += HOUR_MS
    await ofQuorum('one', { ends: ends + DAY_MS, quorum: 10, scores: [4] })
    expect(await evaluate(rule)).toEqual([])
  })

  it('fires when the contract raises its quorum above the votes', async () => {
    stage.clock.now += 3 * DAY_MS
    const rule = toRule(24)
    const ends = stage.clock.now + 20 * HOUR_MS
    const live = { quorum_counts: 'for', is_quorum_live: true }
    await ofQuorum('live', { ends, quorum: 5, scores: [5, 1], more: live })
    expect(await evaluate(rule)).toEqual([])
    stage.clock.now += 10 * HOUR_MS
    await ofQuorum('live', { ends, quorum: 7, scores: [5, 1], more: live })
    expect(await evaluate(rule)).toEqual(SHORT)
  })

  it('is withdrawn once if its votes were read late or its quorum was corrected, and not by votes after the reminder', async () => {
    stage.clock.now += 3 * DAY_MS
    const rule = toRule(24)
    expect(await evaluate(rule)).toEqual([])
    const ends = stage.clock.now + 23 * HOUR_MS
    for (const id of ['late votes', 'late reading', 'lower quorum', 'changed votes'])
      await ofQuorum(id, { ends, quorum: 10, scores: [3] })
    await cast('lower quorum', 'a', '1', 3, 2)
    expect(await evaluate(rule)).toEqual([...SHORT, ...SHORT, ...SHORT, ...SHORT])
    stage.clock.now += HOUR_MS
    await cast('late votes', 'b', '1', 12, 4)
    await cast('late reading', 'b', '1', 12, 0.5)
    await cast('changed votes', 'b', '1', 12, 4)
    await cast('changed votes', 'b', '1', 2, 1.5)
    await ofQuorum('lower quorum', { ends, quorum: 2, scores: [3] })
    const withdrawn = /^Correction: withdrawn: .*: quorum is not reached, and the vote ends soon$/
    expect(await evaluate(rule)).toEqual([expect.stringMatching(withdrawn), expect.stringMatching(withdrawn)])
    expect(await evaluate(rule)).toEqual([])
  })
})
