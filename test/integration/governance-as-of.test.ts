import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { governanceProposalsRoute } from '../../api/routes/daos/governance/proposals.ts'
import { governanceVotesRoute } from '../../api/routes/daos/governance/votes.ts'
import { governance } from '../../shared/datasets/governance.ts'
import { governors } from '../../shared/datasets/governors.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { getDao } from '../support/entities.ts'

const NOW = Date.parse('2024-06-01T12:30:00Z')
const [A, B, C] = ['a', 'b', 'c'].map((one) => `0x${one.repeat(40)}`) as [string, string, string]

const config = createTestConfig()
let database: Awaited<ReturnType<typeof createApiDatabase>>
let api: TestApi

const at = (day: string, hour = '00:00') => `2024-${day} ${hour}:00.000`
const UNITS = '0'.repeat(18)

/** Of 3 to 10 May: a vote that is replaced, and one after the moment that the tests ask about, 6 May. */
const VOTING = { starts_at: at('05-03'), ends_at: at('05-10') }
const MOMENT = '2024-05-06T00:00:30Z'

beforeAll(async () => {
  database = await createApiDatabase(config)
  const { writer, registry } = database
  const dao = getDao(registry, 'uniswap')
  const [space, governor] = [dao.snapshotSpace ?? '', dao.governors.at(-1)?.space ?? '']
  const onSnapshot = (proposal: string, voting_type: string, more: Record<string, unknown> = {}) => ({
    ...{ dao: dao.key, space, kind: 'proposal', proposal, address: C, at: at('05-02'), title: `About ${proposal}` },
    ...{ voting_type, choices: ['For', 'Against'], scores: [70, 7], scores_total: 77, scores_state: 'final', votes: 9 },
    ...{ quorum: 50, ...VOTING, collected_at: at('06-01') },
    ...more,
  })
  const vote = (proposal: string, voter: string, day: string, choice: string, voting_power: number | null) => ({
    ...{ dao: dao.key, space, kind: 'vote', proposal, address: voter, at: day, choice, voting_power },
    collected_at: day,
  })
  await writer.insert({
    table: 'governance_in',
    rows: [
      onSnapshot('single', 'single-choice'),
      onSnapshot('approval', 'approval'),
      onSnapshot('weighted', 'weighted'),
      ...[onSnapshot('huge', 'weighted'), onSnapshot('negative', 'weighted'), onSnapshot('ranked', 'ranked-choice')],
      onSnapshot('secret', 'basic'),
      onSnapshot('powerless', 'basic'),
      onSnapshot('over', 'basic', { ends_at: at('05-05') }),
      onSnapshot('later', 'basic', { at: at('05-06', '00:01') }),
      onSnapshot('pending', 'basic', { starts_at: at('05-07') }),
      ...[vote('single', A, at('05-04'), '1', 10), vote('single', A, at('05-08'), '2', 12)],
      // Replaced twice: by 6 May, the second one counts.
      ...[vote('single', B, at('05-04'), '1', 1), vote('single', B, at('05-05'), '2', 2)],
      ...[vote('single', B, at('05-09'), '1', 4), vote('single', C, at('05-06', '00:00'), '2', 30)],
      vote('single', `0x${'d'.repeat(40)}`, at('05-06', '00:01'), '1', 500),
      ...[vote('approval', A, at('05-04'), '[1,2]', 10), vote('approval', B, at('05-04'), '[2]', 5)],
      ...[vote('weighted', A, at('05-04'), '{"1":1,"2":3}', 10), vote('weighted', B, at('05-04'), '{"2":2}', 5)],
      ...[vote('huge', A, at('05-04'), '{"1":1e308,"2":1e308}', 10), vote('huge', B, at('05-04'), '{"2":2}', 5)],
      vote('negative', A, at('05-04'), '{"1":-1,"2":3}', 10),
      ...[vote('ranked', A, at('05-04'), '[2,1]', 10), vote('secret', A, at('05-04'), '"0xfe"', 10)],
      ...[vote('powerless', A, at('05-04'), '1', null), vote('over', A, at('05-04'), '1', 77)],
    ],
  })
  const event = (proposal: string, kind: string, day: string, more: Record<string, unknown> = {}) => ({
    ...{ dao: dao.key, space: governor, kind, proposal, at: day, collected_at: at('06-01') },
    ...more,
  })
  const onGovernor = (proposal: string, more: Record<string, unknown> = {}) => [
    event(proposal, 'proposal', at('05-02'), {
      ...{ address: C, title: `About ${proposal}`, choices: ['For', 'Against', 'Abstain'] },
    }),
    event(proposal, 'times', at('05-02'), VOTING),
    event(proposal, 'quorum', at('05-03'), {
      ...{ quorum_exact: `20${UNITS}`, quorum_counts: 'for', is_quorum_live: false, decimals: 18 },
      ...more,
    }),
  ]
  const cast = (proposal: string, voter: string, day: string, choice: number, power: number, is_whole = false) =>
    event(proposal, 'vote', day, {
      ...{ address: voter, choice: String(choice), voting_power: power, power_exact: `${power}${UNITS}`, decimals: 18 },
      ...{ choice_powers: [1, 2, 3].map((one) => (one === choice ? `${power}${UNITS}` : '0')), is_whole },
    })
  await writer.insert({
    table: 'governors_in',
    rows: [
      ...[...onGovernor('parts'), ...onGovernor('changed'), ...onGovernor('live', { is_quorum_live: true })],
      ...[
        cast('parts', A, at('05-04'), 1, 10),
        cast('parts', A, at('05-05'), 1, 15),
        cast('parts', A, at('05-07'), 2, 9),
      ],
      ...[cast('changed', A, at('05-04'), 1, 10, true), cast('changed', A, at('05-07'), 2, 10, true)],
      ...[...onGovernor('canceled'), event('canceled', 'canceled', at('05-08'))],
      ...[...onGovernor('executed'), event('executed', 'queued', at('05-11'), { executable_at: at('05-13') })],
      event('executed', 'executed', at('05-14')),
      ...[...onGovernor('undone'), event('undone', 'queued', at('05-11'), { executable_at: at('05-13') })],
      event('undone', 'canceled', at('05-20')),
    ],
  })
  const read = { dao: dao.key, read_at: at('06-01', '12:00') }
  await writer.insert({ table: 'governance_readings', rows: [{ ...read, space }] })
  await writer.insert({ table: 'governor_readings', rows: dao.governors.map((one) => ({ ...read, space: one.space })) })
  for (const { name, sql } of [...(governance.derive ?? []), ...(governors.derive ?? [])])
    await writer.command({ name, sql, params: { entities: [dao.key], slot: at('05-01') } })
  api = await startApi({ config, ...database, changeFeed: createHandFeed(), now: () => NOW })
})

afterAll(async () => {
  await api?.close()
  await database?.drop()
})

async function answer(path: string, status = 200): Promise<Response> {
  const response = await fetch(`${api.url}/data/daos/governance/${path}`)
  if (response.status !== status) throw new Error(`${path}: ${response.status} ${await response.text()}`)
  return response
}

interface Proposal {
  _id: string
  title: string
  state: string | null
  [member: string]: unknown
}
async function getProposals(more: string): Promise<Map<string, Proposal>> {
  const found = (await (await answer(`proposals?name=uniswap&${more}`)).json()) as Proposal[]
  governanceProposalsRoute.response.parse(found)
  return new Map(found.map((one) => [one.title.replace('About ', ''), one]))
}
interface Vote {
  voter: string
  choice: unknown
  votingPower: number
  createdAt: string
}
async function getVotes(proposal: string, more = ''): Promise<unknown[]> {
  const all = await getProposals('source=all')
  const response = await answer(`votes?proposal=${all.get(proposal)?._id}${more}`)
  const votes = (await response.json()) as Vote[]
  governanceVotesRoute.response.parse(votes)
  expect(response.headers.get('x-total-count')).toBe(String(votes.length))
  return votes.map(({ voter, choice, votingPower, createdAt }) => [voter, choice, votingPower, createdAt.slice(5, 10)])
}

describe('votes?asOf=', () => {
  it('has the votes cast by then, and of a changed vote the one that counted then', async () => {
    const then = [
      [C, 2, 30, '05-06'],
      [B, 2, 2, '05-05'],
      [A, 1, 10, '05-04'],
    ]
    expect(await getVotes('single', `&asOf=${MOMENT}`)).toEqual(then)
    // Sorted lists are read by another statement.
    expect(await getVotes('single', `&asOf=${MOMENT}&sort=-createdAt`)).toEqual(then)
    expect(await getVotes('single', '&asOf=2024-05-04T12:00:00Z&sort=voter')).toEqual([
      [A, 1, 10, '05-04'],
      [B, 1, 1, '05-04'],
    ])
    const now = await getVotes('single')
    expect(now.slice(0, 2)).toEqual([
      [B, 1, 4, '05-09'],
      [A, 2, 12, '05-08'],
    ])
    expect(await getVotes('single', `&asOf=${new Date(NOW).toISOString()}`)).toEqual(now)
    expect(await getVotes('single', '&asOf=2024-05-03')).toEqual([])
  })

  it('adds parts of a vote on a governor, and restores a whole one', async () => {
    expect(await getVotes('parts', `&asOf=${MOMENT}`)).toEqual([
      [A, 1, 15, '05-05'],
      [A, 1, 10, '05-04'],
    ])
    expect(await getVotes('changed', `&asOf=${MOMENT}`)).toEqual([[A, 1, 10, '05-04']])
    expect(await getVotes('changed')).toEqual([[A, 2, 10, '05-07']])
  })

  it('pages, and has the same rows in tables', async () => {
    const path = `votes?name=uniswap&source=all&asOf=${MOMENT}`
    const all = (await (await answer(path)).json()) as Vote[]
    expect(all.length).toBeGreaterThan(10)
    const paged: Vote[] = []
    for (let next: string | undefined = `${path}&limit=4`; next !== undefined; ) {
      const response = await answer(next)
      expect(response.headers.get('x-total-count')).toBe(String(all.length))
      paged.push(...((await response.json()) as Vote[]))
      const link = /<(\?[^>]*)>/.exec(response.headers.get('link') ?? '')?.[1]
      next = link === undefined ? undefined : `votes${link}`
    }
    expect(paged).toEqual(all)
    const lines = (await (await answer(`${path}&format=ndjson`)).text()).trim().split('\n')
    expect(lines.map((line) => JSON.parse(line))).toEqual(all)
    expect((await (await answer(`${path}&format=csv&fields=voter`)).text()).trim().split(/\r?\n/)).toEqual([
      '"voter"',
      ...all.map(({ voter }) => `"${voter}"`),
    ])
    for (const format of ['parquet', 'arrow']) {
      const table = await answer(`${path}&format=${format}`)
      expect((await table.arrayBuffer()).byteLength).toBeGreaterThan(500)
    }
  })
})

describe('proposals?asOf=', () => {
  it('has the tallies of the votes cast by then, for each way of voting', async () => {
    const then = await getProposals(`asOf=${MOMENT}`)
    expect([...then.keys()].sort()).toEqual([
      'approval',
      'huge',
      'negative',
      'over',
      'pending',
      'powerless',
      'ranked',
      'secret',
      'single',
      'weighted',
    ])
    const tallies = [...then].map(([name, { state, scores, scoresTotal, votes }]) => [
      name,
      state,
      scores,
      scoresTotal,
      votes,
    ])
    expect(Object.fromEntries(tallies.map(([name, ...rest]) => [name, rest]))).toEqual({
      single: ['active', [10, 32], 42, 3],
      approval: ['active', [10, 15], 15, 2],
      weighted: ['active', [2.5, 12.5], 15, 2],
      huge: ['active', [], 15, 2],
      negative: ['active', [], 10, 1],
      ranked: ['active', [], 10, 1],
      secret: ['active', [], 10, 1],
      powerless: ['active', [], null, 1],
      over: ['closed', [70, 7], 77, 9],
      pending: ['pending', [0, 0], 0, 0],
    })
    const active = await getProposals(`asOf=${MOMENT}&state=active&sort=-scoresTotal&limit=1&include=quorum`)
    expect([...active.values()]).toMatchObject([
      { title: 'About single', quorumState: { power: 42, quorum: 50, missing: 8, reached: false } },
    ])
  })

  it('is the present one at the present time', async () => {
    const path = 'source=all&exact=true&include=quorum,body'
    expect(await getProposals(`${path}&asOf=${new Date(NOW).toISOString()}`)).toEqual(await getProposals(path))
  })

  it('has exact sums and quorums on governors', async () => {
    const path = `source=governor&exact=true&include=quorum&asOf=${MOMENT}`
    const then = await getProposals(path)
    expect(then.get('parts')).toMatchObject({
      ...{ scores: [25, 0, 0], scoresTotal: 25, scoresExact: ['25', '0', '0'], scoresTotalExact: '25', votes: 2 },
      quorumState: { quorum: 20, counted: 'for', power: 25, reached: true, missing: 0, live: false },
    })
    expect(then.get('changed')).toMatchObject({ scores: [10, 0, 0], votes: 1, quorumState: { reached: false } })
    expect(then.get('live')).toMatchObject({ quorum: null, quorumState: { quorum: null, reached: null, live: true } })
    const ended = await getProposals(path.replace(MOMENT, '2024-05-10T00:00:00Z'))
    expect(ended.get('parts')).toMatchObject({ scores: [25, 9, 0] })
    expect(ended.get('live')).toMatchObject({ quorum: 20 })
    const pending = await getProposals(path.replace(MOMENT, '2024-05-02T12:00:00Z'))
    expect(pending.get('parts')).toMatchObject({ state: 'pending', quorum: null, scores: [0, 0, 0] })
  })

  it('has the outcome of that time, and none that is unknown', async () => {
    const outcomesAt = async (moment: string) => {
      const found = await getProposals(`source=governor&asOf=${moment}`)
      return Object.fromEntries(
        ['canceled', 'executed', 'undone'].map((name) => {
          const { state, outcome, queuedAt, executableAt, executedAt, canceledAt } = found.get(name) as Proposal
          const times = [queuedAt, executableAt, executedAt, canceledAt]
          return [name, [state, outcome, ...times.map((time) => (time === null ? null : String(time).slice(5, 10)))]]
        }),
      )
    }
    const open = ['active', null, null, null, null, null]
    expect(await outcomesAt(MOMENT)).toEqual({ canceled: open, executed: open, undone: open })
    expect((await outcomesAt('2024-05-08')).canceled).toEqual(['closed', 'canceled', null, null, null, '05-08'])
    expect(await outcomesAt('2024-05-12')).toMatchObject({
      executed: ['closed', 'queued', '05-11', '05-13', null, null],
      undone: ['closed', 'queued', '05-11', '05-13', null, null],
    })
    // It may have expired before it was canceled.
    expect((await outcomesAt('2024-05-13')).undone).toEqual(['closed', null, '05-11', null, null, null])
    expect(await outcomesAt('2024-05-20')).toMatchObject({
      executed: ['closed', 'executed', '05-11', '05-13', '05-14', null],
      undone: ['closed', 'canceled', '05-11', null, null, '05-20'],
    })
  })

  it('has the same rows in tables, names its time, and refuses the future', async () => {
    const path = `proposals?name=uniswap&asOf=${MOMENT}`
    const response = await answer(path)
    expect(response.headers.get('x-data-as-of')).toBe('2024-05-06T00:00:30.000Z')
    const all = (await response.json()) as Proposal[]
    const lines = (await (await answer(`${path}&format=ndjson`)).text()).trim().split('\n')
    expect(lines.map((line) => JSON.parse(line))).toEqual(all)
    for (const format of ['csv', 'parquet', 'arrow'])
      expect((await (await answer(`${path}&format=${format}`)).arrayBuffer()).byteLength).toBeGreaterThan(500)
    const ending = (await (
      await answer(`proposals?endsBefore=2024-05-11&state=active&asOf=${MOMENT}`)
    ).json()) as unknown[]
    expect(ending).toHaveLength(8)
    for (const list of ['proposals', 'votes']) {
      const problem = await (await answer(`${list}?name=uniswap&asOf=2024-06-02`, 400)).json()
      expect(problem).toMatchObject({ code: 'invalid_parameter', param: 'asOf' })
    }
  })
})
