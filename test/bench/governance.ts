import { DAY_MS } from '../../shared/intervals.ts'
import type { Dao } from '../../shared/registry/entities.ts'
import { type ApiProcess, withApi } from './api-process.ts'
import { createClient, type RecordedRequest, requireGood, toP95 } from './arrivals.ts'
import { atMost, type BenchContext, type Benchmark, type BenchRow, type Findings } from './define-benchmark.ts'
import { type BenchDatabase, withDatabase, withEngine } from './engine.ts'
import { type Sizes, storeVotes, toVoter } from './governance-data.ts'
import { readCpuSeconds } from './processes.ts'

const FULL: Sizes = { votes: 1_000_000, voters: 10_000, proposals: 400, changes: 200_000 }
const SMALL: Sizes = { votes: 20_000, voters: 500, proposals: 40, changes: 4_000 }
/** Records, one after the other. */
const RECORDS = 40
/** Tables and blocs, one after the other. */
const LONG = 3

export const governance: Benchmark = {
  name: 'governance',
  about:
    'Participation in one DAO with a million votes: the record of a delegate, the table of all of them, and blocs.',
  run: (context) =>
    withEngine((engine) => withDatabase(engine, 'governance', (database) => measure(database, engine.pid, context))),
}

async function measure(database: BenchDatabase, enginePid: number, { quick, say }: BenchContext): Promise<Findings> {
  const sizes = quick ? SMALL : FULL
  const dao = database.registry.daoBySlug.get('uniswap')
  if (dao === undefined) throw new Error('the registry has no DAO uniswap')
  const until = Math.floor(Date.now() / DAY_MS) * DAY_MS
  say(`storing ${sizes.votes} votes`)
  await storeVotes(database, dao, sizes, until)
  return withApi(database, {}, async (api) => {
    const { rows, body } = await measureAnswers(api, dao, { enginePid, sizes, until, say })
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
        `${sizes.votes.toLocaleString('en-US')} votes of ${sizes.voters.toLocaleString('en-US')} delegates on ${sizes.proposals} proposals of four years, ${sizes.changes.toLocaleString('en-US')} changes of their power; one client, whose requests all differ, so that no answer comes from the response cache. The records of one range share its proposals and the powers at its end.`,
      ],
    }
  })
}

interface Answers {
  readonly enginePid: number
  readonly sizes: Sizes
  readonly until: number
  say(line: string): void
}

async function measureAnswers(api: ApiProcess, { id }: Dao, { enginePid, sizes, until, say }: Answers) {
  const client = createClient(api.url, 0)
  const toPath = (route: string, days: number, more = '') =>
    `/data/daos/governance/${route}?id=${id}&start=${until - days * DAY_MS}${more}`
  const past = `&end=${until - 20 * DAY_MS}`
  const toRecord = (days: number, index: number, more = '') =>
    toPath('record', days, `&address=${toVoter((index * 7) % sizes.voters)}${more}`)
  /** A range that no request had before. */
  const toFresh = (route: string, days: number, index: number, more: string) =>
    `${toPath(route, days, more)}&end=${until - index * 1_000}`
  const measured: readonly [what: string, count: number, toPath: (index: number) => string, most?: number][] = [
    ['record of a delegate, 90 days', RECORDS, (index) => toRecord(90, index), 100],
    ['record of a delegate, a year that is over', RECORDS, (index) => toRecord(385, index, past), 100],
    ['CSV of all delegates, 90 days', LONG, (index) => toFresh('records', 90, index, '&format=csv'), 5_000],
    ['blocs of a year, all its proposals', LONG, (index) => toFresh('blocs', 365, index, '&proposals=1000'), 2_000],
    ['blocs of a year, its last 10 proposals', LONG, (index) => toFresh('blocs', 365, index, '')],
  ]
  const rows: BenchRow[] = []
  const body: string[][] = []
  try {
    for (const [what, count, toOne, most] of measured) {
      say(what)
      const before = [api.pid, enginePid].map(readCpuSeconds)
      const taken: RecordedRequest[] = []
      for (let index = 0; index < count; index += 1) taken.push(await requireGood(client, toOne(index)))
      const used = [api.pid, enginePid].map((pid, at) => readCpuSeconds(pid) - (before[at] ?? 0))
      body.push([what, String(count), ...used.map((seconds) => ((1000 * seconds) / count).toFixed(0))])
      const a = { name: `${count} requests, p95`, value: toP95(taken), unit: 'ms' }
      rows.push({ what, a, ...(most === undefined ? {} : { target: atMost(most, ' ms') }) })
    }
  } finally {
    client.disconnect()
  }
  return { rows, body }
}
