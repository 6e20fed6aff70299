import { once } from 'node:events'
import { Agent, get, type IncomingMessage } from 'node:http'
import { DAY_MS } from '../../shared/intervals.ts'
import type { Dao } from '../../shared/registry/entities.ts'
import { type ApiProcess, withApi } from './api-process.ts'
import { atMost, type BenchContext, type Benchmark, type BenchRow, type Findings } from './define-benchmark.ts'
import { type BenchDatabase, withDatabase, withEngine } from './engine.ts'
import { readCpuSeconds, readPeakBytes, readResidentBytes } from './processes.ts'

interface Sizes {
  readonly changes: number
  readonly delegates: number
  readonly delegations: number
  readonly requests: number
}
const FULL: Sizes = { changes: 1_000_000, delegates: 50_000, delegations: 300_000, requests: 400 }
const SMALL: Sizes = { changes: 20_000, delegates: 1_000, delegations: 5_000, requests: 40 }

const PROPOSALS = 200
const VOTES_PER_PROPOSAL = 500
const DAYS = 1_500
/** Moments of the past whose records are cached. */
const MOMENTS = 4
const UNCACHED = 5

export const delegates: Benchmark = {
  name: 'delegates',
  about:
    "Delegates of one token with a million changes of power: the list, the list of a past moment, and a delegate's history.",
  run: (context) =>
    withEngine((engine) => withDatabase(engine, 'delegates', (database) => measure(database, engine.pid, context))),
}

async function measure(database: BenchDatabase, enginePid: number, { quick, say }: BenchContext): Promise<Findings> {
  const sizes = quick ? SMALL : FULL
  const dao = database.registry.daoBySlug.get('uniswap')
  if (dao === undefined) throw new Error('the registry has no DAO uniswap')
  const until = Math.floor(Date.now() / DAY_MS) * DAY_MS
  say(`storing ${sizes.changes} changes of power`)
  await storeDelegations(database, dao, sizes, until)
  const { rows, body, before, after, peak } = await withApi(database, {}, async (api) => {
    const cached = await measureAnswers(api, dao, { enginePid, sizes, until, say })
    const readBefore = readResidentBytes(api.pid)
    say('the same requests again, for the memory')
    await measureAnswers(api, dao, { enginePid, sizes, until, say: () => {} })
    return { ...cached, before: readBefore, after: readResidentBytes(api.pid), peak: readPeakBytes(api.pid) }
  })
  const megabytes = (bytes: number) => `${(bytes / 2 ** 20).toFixed(0)} MB`
  return {
    rows,
    tables: [
      {
        title: 'Processor time of a request',
        head: ['what', 'requests', 'API, ms CPU/req', 'ClickHouse, ms CPU/req'],
        body,
      },
    ],
    notes: [
      `${sizes.changes.toLocaleString('en-US')} changes of power of ${sizes.delegates.toLocaleString('en-US')} delegates by a power law, ${sizes.delegations.toLocaleString('en-US')} delegations, ${PROPOSALS} proposals with ${VOTES_PER_PROPOSAL} votes each; one client with one connection, and every request differs from all before it, so no answer comes from the response cache.`,
      `Memory of the API: ${megabytes(before)} after these requests, ${megabytes(after)} after as many more, ${megabytes(peak)} at most.`,
    ],
  }
}

/** A delegate's number by a power law: half of all changes are of a few delegates. */
const toDelegate = (seed: string) => `toUInt32(pow(rand64(${seed}) / 18446744073709551616., 4) * {delegates: UInt32})`
const toAccount = (number: string, prefix: string) => `concat('0x${prefix}', leftPad(lower(hex(${number})), 38, '0'))`

async function storeDelegations({ db }: BenchDatabase, dao: Dao, sizes: Sizes, until: number): Promise<void> {
  const [governor] = dao.governors.slice(-1)
  const { delegates: count, changes, delegations } = sizes
  const params = {
    ...{ dao: dao.key, space: dao.votingToken?.space ?? '', governor: governor?.space ?? '', until },
    ...{ delegates: count, changes, delegations, proposals: PROPOSALS, votes: VOTES_PER_PROPOSAL },
  }
  const at = (total: string) =>
    `fromUnixTimestamp64Milli({until: Int64} - toInt64(intDiv((${total} - number) * ${DAYS} * 86400, ${total})) * 1000, 'UTC')`
  const insert = (sql: string) => db.command({ name: 'store-delegations', sql, params })
  await insert(`INSERT INTO delegations_in (dao, space, kind, at, block_number, log_index, tx, delegate, previous, power, decimals, cause)
SELECT {dao: UInt64}, {space: String}, 'power', ${at('{changes: UInt32}')}, 12000000 + intDiv(number, 4), number % 4,
  concat('0x', leftPad(lower(hex(number)), 64, '0')), delegate, 0,
  toUInt256(rand64(1)) * 1000000 / (1 + cityHash64(delegate) % 1000), 18, if(number % 3 = 0, 'delegation', 'transfer')
FROM (SELECT number, ${toAccount(toDelegate('2'), 'd1')} AS delegate FROM numbers({changes: UInt32}))`)
  await insert(`INSERT INTO delegations_in (dao, space, kind, at, block_number, log_index, tx, delegator, from_delegate, to_delegate)
SELECT {dao: UInt64}, {space: String}, 'delegation', ${at('{delegations: UInt32}')}, 12000000 + number, 100,
  concat('0x', leftPad(lower(hex(number)), 64, '0')), ${toAccount('number % 250000', 'a1')}, '', ${toAccount(toDelegate('3'), 'd1')}
FROM numbers({delegations: UInt32})`)
  await insert(
    `INSERT INTO delegations_in (dao, space, kind, at) VALUES ({dao: UInt64}, {space: String}, 'reading', fromUnixTimestamp64Milli({until: Int64}, 'UTC'))`,
  )
  await insert(
    `INSERT INTO governors_in (dao, space, kind, proposal, address, at) VALUES ({dao: UInt64}, {governor: String}, 'reading', '', '', fromUnixTimestamp64Milli({until: Int64}, 'UTC'))`,
  )
  await insert(`INSERT INTO dao_proposal_details (dao, space, proposal, title, voting_type, starts_at, ends_at, collected_at)
SELECT {dao: UInt64}, {governor: String}, concat({governor: String}, '/', toString(number)), 'Proposal', 'basic', ${at('{proposals: UInt32}')} - INTERVAL 10 DAY AS start, start + INTERVAL 7 DAY, now64(3, 'UTC')
FROM numbers({proposals: UInt32})`)
  await insert(`INSERT INTO dao_cast_votes (dao, created_at, proposal, voter, space, choice, voting_power, collected_at)
SELECT {dao: UInt64}, ${at('{proposals: UInt32} * {votes: UInt32}')} - INTERVAL 5 DAY, concat({governor: String}, '/', toString(intDiv(number, {votes: UInt32}))),
  ${toAccount(toDelegate('4'), 'd1')}, {governor: String}, '1', 1, now64(3, 'UTC')
FROM numbers({proposals: UInt32} * {votes: UInt32})`)
  for (const table of ['delegate_powers', 'delegate_powers_latest', 'delegation_events'])
    await db.command({ name: 'merge', sql: `OPTIMIZE TABLE ${table} FINAL` })
}

/** The durations of requests that came one after the other, in milliseconds, in ascending order. */
async function time(
  api: ApiProcess,
  agent: Agent,
  count: number,
  toPath: (index: number) => string,
): Promise<number[]> {
  const taken: number[] = []
  for (let index = 0; index < count; index += 1) {
    const path = toPath(index)
    const startedAt = performance.now()
    const request = get(api.url + path, { agent })
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    let bytes = 0
    for await (const chunk of response) bytes += (chunk as Buffer).length
    taken.push(performance.now() - startedAt)
    if (response.statusCode !== 200 || bytes < 3)
      throw new Error(`${path}: status ${response.statusCode}, ${bytes} bytes`)
  }
  return taken.sort((a, b) => a - b)
}

const quantile = (sorted: readonly number[], share: number) =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN

interface Answers {
  readonly enginePid: number
  readonly sizes: Sizes
  readonly until: number
  say(line: string): void
}

/** Numbers that no request of this process had before, so that no answer is in the response cache. */
let fresh = 0
let moments = MOMENTS

async function measureAnswers(api: ApiProcess, dao: Dao, { enginePid, sizes, until, say }: Answers) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const list = `/data/daos/governance/delegates?id=${dao.id}`
  const history = `/data/daos/governance/delegates/historic?id=${dao.id}`
  /** A filter that all records pass. */
  const toFilter = () => `&filter=votesCast!=${1e9 + fresh++}`
  const toPast = (day: number) => `&asOf=${until - (100 + day) * DAY_MS}`
  const sorts = ['', '&sort=-delegators', '&sort=-votesCast', '&sort=lastVoteAt']
  const toAddress = (number: number) => `&address=0xd1${number.toString(16).padStart(38, '0')}`
  const measured: readonly [what: string, count: number, toPath: (index: number) => string, most?: number][] = [
    ['list, first request', 1, () => list + toFilter()],
    [
      'list, its records cached: other limit, order or filter',
      sizes.requests,
      (index) => `${list}${toFilter()}${sorts[index % sorts.length]}&limit=${100 + (index % 5)}`,
      20,
    ],
    ['list of a past moment, first request of each', UNCACHED, () => list + toPast(moments++)],
    [`list of ${MOMENTS} past moments, to cache their records`, MOMENTS, (index) => list + toPast(index) + toFilter()],
    [
      'list of a past moment, its records cached',
      sizes.requests,
      (index) => `${list}${toPast(index % MOMENTS)}${toFilter()}`,
      20,
    ],
    [
      'history of a delegate',
      sizes.requests,
      (index) => `${history}${toAddress((index * 7) % sizes.delegates)}&limit=${100 + (fresh++ % 800)}`,
      20,
    ],
  ]
  const rows: BenchRow[] = []
  const body: string[][] = []
  for (const [what, count, toPath, most] of measured) {
    say(what)
    const before = [api.pid, enginePid].map(readCpuSeconds)
    const taken = await time(api, agent, count, toPath)
    const used = [api.pid, enginePid].map((pid, at) => readCpuSeconds(pid) - (before[at] ?? 0))
    body.push([what, String(count), ...used.map((seconds) => ((1000 * seconds) / count).toFixed(2))])
    say(`${what}: ${[0.5, 0.99, 1].map((share) => quantile(taken, share).toFixed(1)).join(' / ')} ms`)
    const name = `median ${quantile(taken, 0.5).toFixed(1)} ms; 99 of 100 within`
    const a = { name, value: quantile(taken, 0.99), unit: 'ms' }
    rows.push({ what, a, ...(most === undefined ? {} : { target: atMost(most, ' ms') }) })
  }
  agent.destroy()
  return { rows, body }
}
