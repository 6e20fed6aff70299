import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { DAY_MS, HOUR_MS } from '../../shared/intervals.ts'
import type { Entity, Job } from '../../workers/job/define-job.ts'
import { jobs } from '../../workers/jobs/list.ts'
import { emptyLedger, type Payload, readLedger, runFor, type Told } from '../support/answered.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'
import type { Fault } from '../upstream/faults.ts'

const NOW = Date.parse('2024-05-06T07:05:09Z')
const HOUR = Math.floor(NOW / HOUR_MS) * HOUR_MS
const TODAY = Math.floor(NOW / DAY_MS) * DAY_MS

let pipeline: Pipeline
beforeAll(async () => {
  pipeline = await createPipeline({ now: NOW })
})
afterAll(() => pipeline?.close())
afterEach(async () => {
  pipeline.upstream.faults.clear()
  await emptyLedger(pipeline)
})

const slotAt = (slot: number): Payload => ({ kind: 'slot', slot })
const rangeOf = (from: number, to: number, interval: string): Payload => ({ kind: 'range', from, to, interval })

interface Source {
  readonly dataset: string
  /** As the coverage names it. */
  readonly provider: string
  /** As the stand-in names it. */
  readonly host?: string
  readonly payload: Payload
  /** What an empty answer of two entities comes to. */
  readonly empty: 'failed' | 'unserved' | 'nothing' | 'rows'
  /** Its answers are pages and not JSON: half of one may be enough. */
  readonly isPage?: true
  /** 403 is about what was asked for. */
  readonly refuses?: string
}

const days = rangeOf(TODAY - 3 * DAY_MS, TODAY - DAY_MS, '1d')

/** Every provider of every dataset that is asked over HTTP, but for those that have a file of their own. */
const SOURCES: readonly Source[] = [
  { dataset: 'prices', provider: 'coinmarketcap', payload: slotAt(HOUR), empty: 'unserved' },
  {
    dataset: 'prices',
    provider: 'coinmarketcap',
    payload: rangeOf(HOUR - 4 * HOUR_MS, HOUR - 2 * HOUR_MS, '5m'),
    empty: 'nothing',
  },
  { dataset: 'prices', provider: 'coingecko', payload: slotAt(HOUR), empty: 'unserved' },
  {
    dataset: 'prices',
    provider: 'coingecko',
    payload: rangeOf(HOUR - 4 * HOUR_MS, HOUR - 2 * HOUR_MS, '5m'),
    empty: 'nothing',
  },
  { dataset: 'tvl', provider: 'defillama', payload: slotAt(HOUR), empty: 'unserved' },
  { dataset: 'tvl', provider: 'defillama', payload: days, empty: 'failed' },
  { dataset: 'holders', provider: 'moralis', payload: slotAt(HOUR), empty: 'failed' },
  { dataset: 'holders', provider: 'ethplorer', payload: slotAt(HOUR), empty: 'failed' },
  { dataset: 'treasury', provider: 'goldrush', payload: slotAt(TODAY), empty: 'failed' },
  { dataset: 'treasury', provider: 'goldrush', payload: days, empty: 'failed' },
  { dataset: 'treasury', provider: 'defillama', payload: slotAt(TODAY), empty: 'failed' },
  { dataset: 'treasury', provider: 'defillama', payload: days, empty: 'failed' },
  { dataset: 'discord', provider: 'discord', payload: slotAt(TODAY), empty: 'failed' },
  { dataset: 'telegram', provider: 'telegram', payload: slotAt(TODAY), empty: 'failed', isPage: true },
  {
    dataset: 'telegram',
    provider: 'telegram-bot',
    payload: slotAt(TODAY),
    empty: 'failed',
    refuses: 'provider_unavailable',
  },
  { dataset: 'daos', provider: 'coinmarketcap', payload: slotAt(TODAY), empty: 'unserved' },
  { dataset: 'daos', provider: 'defillama', payload: slotAt(TODAY), empty: 'unserved' },
  { dataset: 'daos', provider: 'coingecko', payload: slotAt(TODAY), empty: 'failed' },
]

function jobOf(dataset: string): Job {
  const job = jobs.find(({ name }) => name === dataset)
  if (job === undefined) throw new Error(`there is no job ${dataset}`)
  return job
}

/** Entities that the provider can be asked about, and has data of. */
function toSome({ dataset, provider }: Pick<Source, 'dataset' | 'provider'>, count = 2): readonly Entity[] {
  const job = jobOf(dataset)
  const collector = job.connect(pipeline.context).find((one) => one.provider === provider)
  // Of the links that DAOs lack, the one provider has no more than a logo.
  const lacks = (entity: Entity) =>
    provider !== 'defillama' || (Reflect.get(entity, 'missing') ?? ['image']).includes('image')
  return job
    .entities(pipeline.registry)
    .filter((entity) => collector?.covers(entity) && lacks(entity))
    .slice(0, count)
}

const statesOf = (told: readonly Told[]) => [...new Set(told.map(({ state }) => state))]

describe.each(SOURCES)('$dataset of $provider ($payload.kind)', (source) => {
  const { dataset, provider, host = provider, payload } = source
  const job = jobOf(dataset)
  const run = async (ids: readonly string[]) => runFor(pipeline, job, payload, { ids, providers: [provider] })

  const cases: [string, Fault, string][] = [
    ['a connection that breaks midway', { kind: 'truncate' }, 'provider_unavailable'],
    ['half of an answer', { kind: 'cut' }, 'provider_malformed'],
    ['403', { kind: 'status', status: 403 }, source.refuses ?? 'provider_rejected'],
    ['503', { kind: 'status', status: 503 }, 'provider_unavailable'],
    ['another shape', { kind: 'shape' }, 'provider_malformed'],
  ]
  it.each(cases.filter(([, { kind }]) => !(source.isPage && kind === 'cut')))(
    '%s is a failure, told by the ledger, and asked again for the same',
    async (_, fault, code) => {
      const entities = toSome(source)
      const ids = entities.map(({ id }) => id)
      pipeline.upstream.faults.set(host, fault)
      const failed = await run(ids)
      expect(failed).toMatchObject({ code, again: ids })
      const told = await readLedger(pipeline, job, entities)
      expect(told).toHaveLength(2)
      for (const { state, reason } of told) {
        expect(state).toBe('failed')
        expect(reason).toMatch(/^[a-z-]+.*: .+/)
      }
      pipeline.upstream.faults.clear()
      expect(await run(failed.again)).toMatchObject({ code: undefined, uncovered: 0 })
      expect(statesOf((await readLedger(pipeline, job, entities)).filter(({ buckets }) => buckets > 0))).toContain(
        'stored',
      )
    },
  )

  it('an empty answer is what its documentation says that it is', async () => {
    const entities = toSome(source)
    pipeline.upstream.faults.set(host, { kind: 'empty' })
    const outcome = await run(entities.map(({ id }) => id))
    expect(outcome.code === undefined).toBe(source.empty !== 'failed')
    expect(statesOf(await readLedger(pipeline, job, entities))).toEqual([source.empty])
  })
})

/** What the path of a call about one entity has in it, and of no other. */
const nameOf = (entity: Entity, member: string): string => {
  const wallets: unknown = Reflect.get(entity, 'wallets')
  if (member === 'wallet') return String(Array.isArray(wallets) ? wallets[0]?.address : '')
  return String(Reflect.get(entity, member)).split('/').at(-1) ?? ''
}

describe('an id that a provider does not know', () => {
  const unknown: readonly (Pick<Source, 'dataset' | 'provider' | 'payload'> & { by: string; fault: Fault })[] = [
    ...[400, 404].map((status) => ({
      ...{ dataset: 'tvl', provider: 'defillama', payload: days, by: 'defillama' },
      fault: { kind: 'status', status } as const,
    })),
    ...[slotAt(TODAY), days].flatMap((payload) => [
      {
        dataset: 'treasury',
        provider: 'defillama',
        payload,
        by: 'defillama',
        fault: { kind: 'status', status: 400 } as const,
      },
      {
        dataset: 'treasury',
        provider: 'goldrush',
        payload,
        by: 'wallet',
        fault: { kind: 'status', status: 404 } as const,
      },
    ]),
    {
      ...{ dataset: 'prices', provider: 'coingecko', payload: rangeOf(HOUR - 2 * HOUR_MS, HOUR - HOUR_MS, '5m') },
      ...{ by: 'coingeckoId', fault: { kind: 'status', status: 404 } },
    },
    {
      dataset: 'holders',
      provider: 'moralis',
      payload: slotAt(HOUR),
      by: 'contractAddress',
      fault: { kind: 'status', status: 404 },
    },
    {
      dataset: 'holders',
      provider: 'ethplorer',
      payload: slotAt(HOUR),
      by: 'contractAddress',
      fault: { kind: 'status', status: 400 },
    },
    {
      dataset: 'discord',
      provider: 'discord',
      payload: slotAt(TODAY),
      by: 'discord',
      fault: { kind: 'status', status: 404 },
    },
    { dataset: 'telegram', provider: 'telegram', payload: slotAt(TODAY), by: 'telegram', fault: { kind: 'empty' } },
    {
      dataset: 'telegram',
      provider: 'telegram-bot',
      payload: slotAt(TODAY),
      by: 'telegram',
      fault: { kind: 'status', status: 400 },
    },
    {
      dataset: 'daos',
      provider: 'coingecko',
      payload: slotAt(TODAY),
      by: 'coingeckoId',
      fault: { kind: 'status', status: 404 },
    },
  ]
  it.each(unknown)(
    'leaves that one unserved at $provider ($dataset, $payload.kind) and the others with rows',
    async (source) => {
      const { dataset, provider, payload, by, fault } = source
      const [job, entities] = [jobOf(dataset), toSome(source)]
      const [first, second] = entities
      if (first === undefined || second === undefined) throw new Error('there are no two entities')
      pipeline.upstream.faults.set(provider, fault, { match: nameOf(first, by) })
      const ids = entities.map(({ id }) => id)
      const outcome = await runFor(pipeline, job, payload, { ids, providers: [provider] })
      expect(outcome).toMatchObject({ code: undefined, uncovered: 1 })
      const told = await readLedger(pipeline, job, entities)
      expect(told.filter(({ entity }) => entity === first.key)).toMatchObject([{ state: 'unserved', provider }])
      expect(statesOf(told.filter(({ entity, buckets }) => entity === second.key && buckets > 0))).toContain('stored')
    },
  )
})

describe('a key that is missing', () => {
  const missing = [
    ['prices', 'coinmarketcap', days, 'COINMARKETCAP_API_KEY'],
    ['holders', 'moralis', slotAt(HOUR), 'MORALIS_API_KEY'],
    ['treasury', 'goldrush', slotAt(TODAY), 'GOLDRUSH_API_KEY'],
    ['treasury', 'goldrush', days, 'GOLDRUSH_API_KEY'],
    ['dex-trades', 'moralis-swaps', slotAt(HOUR), 'MORALIS_API_KEY'],
    ['ratings', 'ratings-file', slotAt(TODAY), 'RATINGS_SOURCE'],
  ] as const
  it.each(missing)('of %s at %s is no failure: nobody is asked, and the setting is named', async (...one) => {
    const [dataset, provider, payload, setting] = one
    const job = jobOf(dataset)
    const entities = toSome({ dataset, provider })
    expect(entities).toHaveLength(2)
    const { config } = pipeline.context
    const { coinmarketcap, moralis, goldrush, ratings } = config.providers
    const without = { apiKey: undefined }
    const providers = {
      ...config.providers,
      coinmarketcap: { ...coinmarketcap, ...without },
      moralis: { ...moralis, ...without },
      goldrush: { ...goldrush, ...without },
      ratings: { ...ratings, source: undefined },
    }
    const context = { ...pipeline.context, config: { ...config, providers } }
    pipeline.upstream.requests.clear()
    const ids = entities.map(({ id }) => id)
    const outcome = await runFor({ context }, job, payload, { ids, providers: [provider] })
    expect(outcome).toEqual({ rows: 0, uncovered: 2, code: undefined, again: [] })
    expect(pipeline.upstream.requests.all()).toEqual([])
    const told = await readLedger(pipeline, job, entities)
    expect(told).toHaveLength(2)
    for (const { state, reason } of told) {
      expect(state).toBe('unserved')
      expect(reason).toContain(setting)
    }
  })
})

describe('a fallback', () => {
  const job = jobOf('prices')
  const range = rangeOf(HOUR - 4 * HOUR_MS, HOUR - 2 * HOUR_MS, '5m')

  it('that has no rows settles nothing after a truncated body: the next try gets all 20', async () => {
    const entities = toSome({ dataset: 'prices', provider: 'coinmarketcap' }, 20)
    const ids = entities.map(({ id }) => id)
    for (const fault of [{ kind: 'cut' }, { kind: 'truncate' }] as const) {
      await emptyLedger(pipeline)
      pipeline.upstream.faults.set('coinmarketcap', fault)
      pipeline.upstream.faults.set('coingecko', { kind: 'empty' })
      const failed = await runFor(pipeline, job, range, { ids })
      expect(failed.again).toEqual(ids)
      const told = await readLedger(pipeline, job, entities)
      expect(told).toHaveLength(20)
      for (const { state, reason } of told) {
        expect(state).toBe('failed')
        expect(reason).toMatch(/^coinmarketcap .+; coingecko: nothing in its answer$/)
      }
      pipeline.upstream.faults.clear()
      pipeline.upstream.faults.set('coingecko', { kind: 'reset' })
      expect(await runFor(pipeline, job, range, { ids: failed.again })).toMatchObject({ rows: 20 * 24, uncovered: 0 })
      const known = (await readLedger(pipeline, job, entities)).filter(({ buckets }) => buckets > 0)
      expect(known.filter(({ state }) => state === 'stored').map(({ buckets }) => buckets)).toEqual(Array(20).fill(24))
      pipeline.upstream.faults.clear()
    }
  })

  it('that is coarser is told as coarser, with the reason why the finer one has nothing', async () => {
    const [entity] = toSome({ dataset: 'prices', provider: 'coinmarketcap' }, 1)
    if (entity === undefined) throw new Error('there is no token')
    const old = rangeOf(TODAY - 5 * DAY_MS, TODAY - 4 * DAY_MS, '5m')
    pipeline.upstream.faults.set('coinmarketcap', { kind: 'status', status: 403 })
    const failed = await runFor(pipeline, job, old, { ids: [entity.id] })
    expect(failed.again).toEqual([entity.id])
    const told = await readLedger(pipeline, job, [entity])
    expect(told).toContainEqual(
      expect.objectContaining({ state: 'stored', provider: 'coingecko', seconds: 3600, buckets: 288 }),
    )
    expect(told).toContainEqual(
      expect.objectContaining({
        state: 'coarser',
        provider: 'coingecko',
        reason: expect.stringMatching(/^coinmarketcap .+403/),
      }),
    )
    pipeline.upstream.faults.clear()
    expect(await runFor(pipeline, job, old, { ids: failed.again })).toMatchObject({ uncovered: 0, code: undefined })
    expect(await readLedger(pipeline, job, [entity])).toContainEqual(
      expect.objectContaining({ state: 'stored', provider: 'coinmarketcap', seconds: 300, buckets: 288 }),
    )
  })

  it('is asked only about whom the first one has nothing of', async () => {
    const holders = jobOf('holders')
    const [first, second] = toSome({ dataset: 'holders', provider: 'ethplorer' })
    if (first === undefined || second === undefined) throw new Error('there are no two tokens')
    pipeline.upstream.faults.set('moralis', { kind: 'cut' }, { match: nameOf(first, 'contractAddress') })
    pipeline.upstream.requests.clear()
    const ids = [first.id, second.id]
    expect(await runFor(pipeline, holders, slotAt(HOUR), { ids })).toMatchObject({ rows: 2, uncovered: 0 })
    const ofFallback = pipeline.upstream.requests.all().filter(({ provider }) => provider === 'ethplorer')
    expect(ofFallback.length).toBeGreaterThan(0)
    for (const { path } of ofFallback) expect(path).toContain(nameOf(first, 'contractAddress'))
  })
})
