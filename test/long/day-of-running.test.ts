import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { DAY_MS, INTERVAL_SECONDS, toBucketStart } from '../../shared/intervals.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { createHttpClients } from '../../workers/http/client.ts'
import type { Job } from '../../workers/job/define-job.ts'
import { jobs } from '../../workers/jobs/list.ts'
import { runJob } from '../../workers/run/runner.ts'
import { toPendingReport } from '../support/pending-report.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'
import type { Chain, NodeHabits } from '../upstream/chain.ts'
import { createSimulatedWorld } from '../upstream/simulated.ts'

const NOW = Date.parse('2024-05-06T07:05:09Z')
const PAGE = join(import.meta.dirname, '../../docs/going-live.md')

const NO_KEYS = {
  COINMARKETCAP_API_KEY: '',
  COINGECKO_API_KEY: '',
  MORALIS_API_KEY: '',
  GOLDRUSH_API_KEY: '',
  X_BEARER_TOKEN: '',
  TELEGRAM_BOT_TOKEN: '',
  RPC_URLS: '',
}
/** Quotas of free plans: the stand-in's settings are larger. A later slot is counted, because the first one may be short. */
const FREE_PLANS = { ETHPLORER_REQUESTS_PER_HOUR: '16', MORALIS_UNITS_PER_DAY: '40000', DEX_FIRST_RUN_HOURS: '1' }

/** Free keys: X has none, and a node of a free plan returns logs of ten blocks per call. */
const FREE_KEYS = { COINMARKETCAP_CREDITS_PER_MONTH: '10000', COINGECKO_CALLS_PER_MONTH: '10000', X_BEARER_TOKEN: '' }
const FREE_NODE = { host: 'alchemy', mostBlocks: 10 } as const

interface Way {
  readonly settings: Readonly<Record<string, string>>
  readonly habits?: NodeHabits
}

const WAYS: Readonly<Record<string, Way>> = {
  'no keys': { settings: { ...FREE_PLANS, ...NO_KEYS } },
  'free keys': { settings: { ...FREE_PLANS, ...FREE_KEYS }, habits: FREE_NODE },
  'all keys': { settings: FREE_PLANS },
}

function toChains(habits: NodeHabits): Readonly<Record<string, Chain>> {
  const ethereum = createSimulatedWorld(loadRegistry(), 1).chain('ethereum')
  return ethereum === null ? {} : { ethereum: { ...ethereum, habits } }
}

interface Day {
  /** Requests by provider. */
  readonly requests: ReadonlyMap<string, number>
  /** The share of a dataset's entities that have data, or a turn on that day. */
  readonly answered: ReadonlyMap<string, number>
}

/** A slot of a job that has run before, as most have. */
async function runSlot(pipeline: Pipeline, job: Job): Promise<{ entities: number; uncovered: number }> {
  const { context, clock, upstream } = pipeline
  const step = INTERVAL_SECONDS[job.cadence] * 1000
  let uncovered = 0
  for (const at of [NOW, NOW + step]) {
    clock.now = at
    upstream.requests.clear()
    const slot = toBucketStart(at, job.cadence)
    // Hourly limits use the real clock: each slot has separate ones.
    const collectors = job.connect({ ...context, http: createHttpClients({ log: context.log, backoffMs: 1 }) })
    const report = await runJob(job, collectors, context, { kind: 'slot', slot }).catch(toPendingReport)
    uncovered = report.uncovered
  }
  return { entities: job.entities(context.registry).length, uncovered }
}

async function liveThroughDay(pipeline: Pipeline): Promise<Day> {
  const requests = new Map<string, number>()
  const answered = new Map<string, number>()
  for (const job of jobs.filter(({ computedFrom }) => computedFrom.length === 0)) {
    const { entities, uncovered } = await runSlot(pipeline, job)
    const slots = DAY_MS / INTERVAL_SECONDS[job.cadence] / 1000
    for (const { provider, count } of pipeline.upstream.requests.all())
      requests.set(provider, (requests.get(provider) ?? 0) + count * slots)
    answered.set(job.name, entities === 0 ? 1 : 1 - uncovered / entities)
  }
  return { requests, answered }
}

const days = new Map<string, Day>()
const pipelines: Pipeline[] = []
afterAll(async () => void (await Promise.all(pipelines.map((pipeline) => pipeline.close()))))

describe('simulated day of the pipeline', () => {
  it.each(Object.entries(WAYS))('runs with %s', async (way, { settings, habits }) => {
    const pipeline = await createPipeline({
      registry: loadRegistry(),
      now: NOW,
      settings,
      chains: habits === undefined ? {} : toChains(habits),
    })
    pipelines.push(pipeline)
    days.set(way, await liveThroughDay(pipeline))
  })

  it('stays within the free plans, and spreads monthly plans over their days', () => {
    const toCount = (way: string, provider: string) => days.get(way)?.requests.get(provider)
    for (const way of ['free keys', 'all keys']) expect(toCount(way, 'moralis')).toBeLessThanOrEqual(800)
    expect(toCount('free keys', 'coinmarketcap')).toBeLessThanOrEqual(15_000 / 31)
    expect(toCount('free keys', 'coingecko')).toBeLessThanOrEqual(10_000 / 31)
    expect(toCount('free keys', 'x') ?? 0).toBe(0)
    expect(toCount('no keys', 'ethplorer')).toBeLessThanOrEqual(3_000 / 7)
  })

  const incomplete = (way: string) =>
    [...(days.get(way)?.answered ?? [])].filter(([, share]) => share < 0.5).map(([name]) => name)

  it('collects every dataset with all keys, except ratings, which need a file', () => {
    expect(incomplete('all keys')).toEqual(['ratings'])
  })

  it('collects every dataset with free keys, except those of X and those beyond the history of a free node', () => {
    expect(incomplete('free keys')).toEqual(['governors', 'delegations', 'ratings', 'twitter', 'twitter-sentiment'])
  })

  it('matches the table in the guide', () => {
    const page = readFileSync(PAGE, 'utf8')
    const observed = toPage(page)
    if (process.env.RECORD_DAY !== undefined) writeFileSync(PAGE, observed)
    else expect(page).toBe(observed)
  })
})

const MARK = { begin: '<!-- a day: begin -->', end: '<!-- a day: end -->' }

function toPage(page: string): string {
  const [before = '', rest = ''] = page.split(MARK.begin)
  const [, after = ''] = rest.split(MARK.end)
  return [before, MARK.begin, '\n\n', toTables(), '\n\n', MARK.end, after].join('')
}

function toTables(): string {
  const ways = [...days.keys()]
  const providers = [...new Set([...days.values()].flatMap(({ requests }) => [...requests.keys()]))].sort()
  const table = (title: string, names: readonly string[], toCell: (day: Day, name: string) => string) =>
    [
      `| ${[title, ...ways].join(' | ')} |`,
      `| ${['---', ...ways.map(() => '--:')].join(' | ')} |`,
      ...names.map((name) => `| ${[name, ...[...days.values()].map((day) => toCell(day, name))].join(' | ')} |`),
    ].join('\n')
  const requests = table('requests a day', providers, (day, name) => String(day.requests.get(name) ?? 0))
  const collected = jobs.filter(({ computedFrom }) => computedFrom.length === 0).map(({ name }) => name)
  const shares = table('answered', collected, (day, name) => `${Math.floor((day.answered.get(name) ?? 0) * 100)} %`)
  return `${requests}\n\n${shares}`
}
