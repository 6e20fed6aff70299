import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { DAY_MS, HOUR_MS } from '../../shared/intervals.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import type { Entity } from '../../workers/job/define-job.ts'
import {
  days,
  emptyLedger,
  HOUR,
  jobOf,
  NOW,
  type Payload,
  rangeOf,
  readLedger,
  runFor,
  slotAt,
  statesOf,
  TODAY,
  toSample,
} from '../support/answered.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'
import type { Fault } from '../upstream/faults.ts'

let pipeline: Pipeline
beforeAll(async () => {
  pipeline = await createPipeline({ registry: loadRegistry(), now: NOW })
})
afterAll(() => pipeline?.close())
afterEach(async () => {
  pipeline.upstream.faults.clear()
  await emptyLedger(pipeline)
})

/** A string that only the path of a call about this entity contains. */
const nameOf = (entity: Entity, member: string): string => {
  const wallets: unknown = Reflect.get(entity, 'wallets')
  if (member === 'wallet') return String(Array.isArray(wallets) ? wallets[0]?.address : '')
  return String(Reflect.get(entity, member)).split('/').at(-1) ?? ''
}

describe('entity id that a provider does not know', () => {
  const unknown: readonly ({ dataset: string; provider: string; payload: Payload } & { by: string; fault: Fault })[] = [
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
    'leaves that entity unserved at $provider ($dataset, $payload.kind) and stores rows of the others',
    async (source) => {
      const { dataset, provider, payload, by, fault } = source
      const [job, entities] = [jobOf(dataset), toSample(pipeline, source)]
      const [first, second] = entities
      if (first === undefined || second === undefined) throw new Error('there are no two entities')
      pipeline.upstream.faults.set(provider, fault, { match: nameOf(first, by) })
      const ids = entities.map(({ id }) => id)
      const outcome = await runFor(pipeline, job, payload, { ids, providers: [provider] })
      expect(outcome).toMatchObject({ code: undefined, uncovered: 1 })
      const ledger = await readLedger(pipeline, job, entities)
      expect(ledger.filter(({ entity }) => entity === first.key)).toMatchObject([{ state: 'unserved', provider }])
      expect(statesOf(ledger.filter(({ entity, buckets }) => entity === second.key && buckets > 0))).toContain('stored')
    },
  )
})

describe('missing provider key', () => {
  const missing = [
    ['prices', 'coinmarketcap', days, 'COINMARKETCAP_API_KEY'],
    ['holders', 'moralis', slotAt(HOUR), 'MORALIS_API_KEY'],
    ['treasury', 'goldrush', slotAt(TODAY), 'GOLDRUSH_API_KEY'],
    ['treasury', 'goldrush', days, 'GOLDRUSH_API_KEY'],
    ['dex-trades', 'moralis-swaps', slotAt(HOUR), 'MORALIS_API_KEY'],
    ['ratings', 'ratings-file', slotAt(TODAY), 'RATINGS_SOURCE'],
    ['twitter', 'x', slotAt(TODAY), 'X_BEARER_TOKEN'],
    ['twitter-sentiment', 'x', slotAt(TODAY), 'X_BEARER_TOKEN'],
  ] as const
  it.each(missing)(
    'is no failure of %s at %s: nothing is requested, and the reason names the setting',
    async (...one) => {
      const [dataset, provider, payload, setting] = one
      const job = jobOf(dataset)
      const entities = toSample(pipeline, { dataset, provider })
      expect(entities).toHaveLength(2)
      const { config } = pipeline.context
      const { coinmarketcap, moralis, goldrush, ratings, x } = config.providers
      const without = { apiKey: undefined }
      const providers = {
        ...config.providers,
        coinmarketcap: { ...coinmarketcap, ...without },
        moralis: { ...moralis, ...without },
        goldrush: { ...goldrush, ...without },
        ratings: { ...ratings, source: undefined },
        x: { ...x, bearerToken: undefined },
      }
      const context = { ...pipeline.context, config: { ...config, providers } }
      pipeline.upstream.requests.clear()
      const ids = entities.map(({ id }) => id)
      const outcome = await runFor({ context }, job, payload, { ids, providers: [provider] })
      expect(outcome).toEqual({ rows: 0, uncovered: 2, code: undefined, again: [] })
      expect(pipeline.upstream.requests.all()).toEqual([])
      const ledger = await readLedger(pipeline, job, entities)
      expect(ledger).toHaveLength(2)
      for (const { state, reason } of ledger) {
        expect(state).toBe('unserved')
        expect(reason).toContain(setting)
      }
    },
  )
})

describe('fallback provider', () => {
  const job = jobOf('prices')
  const range = rangeOf(HOUR - 4 * HOUR_MS, HOUR - 2 * HOUR_MS, '5m')

  it('does not complete a range without rows after a truncated body: the next attempt stores all 20', async () => {
    const entities = toSample(pipeline, { dataset: 'prices', provider: 'coinmarketcap' }, 20)
    const ids = entities.map(({ id }) => id)
    for (const fault of [{ kind: 'cut' }, { kind: 'truncate' }] as const) {
      await emptyLedger(pipeline)
      pipeline.upstream.faults.set('coinmarketcap', fault)
      pipeline.upstream.faults.set('coingecko', { kind: 'empty' })
      const failed = await runFor(pipeline, job, range, { ids })
      expect(failed.again).toEqual(ids)
      const ledger = await readLedger(pipeline, job, entities)
      expect(ledger).toHaveLength(20)
      for (const { state, reason } of ledger) {
        expect(state).toBe('failed')
        expect(reason).toMatch(/^coinmarketcap .+; coingecko: nothing in its answer$/)
      }
      pipeline.upstream.faults.clear()
      pipeline.upstream.faults.set('coingecko', { kind: 'reset' })
      expect(await runFor(pipeline, job, range, { ids: failed.again })).toMatchObject({ rows: 20 * 24, uncovered: 0 })
      const values = (await readLedger(pipeline, job, entities)).filter(({ buckets }) => buckets > 0)
      expect(values.filter(({ state }) => state === 'stored').map(({ buckets }) => buckets)).toEqual(Array(20).fill(24))
      pipeline.upstream.faults.clear()
    }
  })

  it("is recorded as coarser, with the reason of the finer provider's failure", async () => {
    const [entity] = toSample(pipeline, { dataset: 'prices', provider: 'coinmarketcap' }, 1)
    if (entity === undefined) throw new Error('there is no token')
    const old = rangeOf(TODAY - 5 * DAY_MS, TODAY - 4 * DAY_MS, '5m')
    pipeline.upstream.faults.set('coinmarketcap', { kind: 'status', status: 403 })
    const failed = await runFor(pipeline, job, old, { ids: [entity.id] })
    expect(failed.again).toEqual([entity.id])
    const ledger = await readLedger(pipeline, job, [entity])
    expect(ledger).toContainEqual(
      expect.objectContaining({ state: 'stored', provider: 'coingecko', seconds: 3600, buckets: 288 }),
    )
    expect(ledger).toContainEqual(
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

  it('is queried only for entities that the first provider did not return', async () => {
    const holders = jobOf('holders')
    const [first, second] = toSample(pipeline, { dataset: 'holders', provider: 'ethplorer' })
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
