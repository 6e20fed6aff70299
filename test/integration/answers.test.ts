import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { HOUR_MS } from '../../shared/intervals.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
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
  pipeline = await createPipeline({ registry: loadRegistry(), now: NOW, nodes: ['ethereum', 'arbitrum'] })
})
afterAll(() => pipeline?.close())
afterEach(async () => {
  pipeline.upstream.faults.clear()
  await emptyLedger(pipeline)
})

interface Source {
  readonly dataset: string
  /** Name of the provider in the coverage. */
  readonly provider: string
  /** Name of the provider in the stand-in. */
  readonly host?: string
  readonly payload: Payload
  /** Coverage state after an empty response for two of all entities: silence is judged only if all were asked. */
  readonly empty: 'failed' | 'unserved' | 'nothing' | 'stored'
  /** The response is a page instead of JSON: half of one may be sufficient. */
  readonly isPage?: true
  /** 403 refers to one chat, not to the other ones. */
  readonly is403AboutOne?: true
}

/** Every provider of every dataset with HTTP requests, except the Index Token, which has its own test file. */
const SOURCES: readonly Source[] = [
  { dataset: 'prices', provider: 'coinmarketcap', payload: slotAt(HOUR), empty: 'unserved' },
  {
    dataset: 'prices',
    provider: 'coinmarketcap',
    payload: rangeOf(HOUR - 4 * HOUR_MS, HOUR - 2 * HOUR_MS, '5m'),
    empty: 'unserved',
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
  { dataset: 'holders', provider: 'moralis', payload: slotAt(HOUR), empty: 'unserved' },
  { dataset: 'holders', provider: 'ethplorer', payload: slotAt(HOUR), empty: 'unserved' },
  { dataset: 'treasury', provider: 'goldrush', payload: slotAt(TODAY), empty: 'unserved' },
  { dataset: 'treasury', provider: 'goldrush', payload: days, empty: 'failed' },
  { dataset: 'treasury', provider: 'defillama', payload: slotAt(TODAY), empty: 'failed' },
  { dataset: 'treasury', provider: 'defillama', payload: days, empty: 'failed' },
  { dataset: 'fees', provider: 'defillama', payload: slotAt(TODAY), empty: 'failed' },
  { dataset: 'fees', provider: 'defillama', payload: days, empty: 'failed' },
  { dataset: 'discord', provider: 'discord', payload: slotAt(TODAY), empty: 'unserved' },
  { dataset: 'telegram', provider: 'telegram', payload: slotAt(TODAY), empty: 'unserved', isPage: true },
  {
    dataset: 'telegram',
    provider: 'telegram-bot',
    payload: slotAt(TODAY),
    empty: 'unserved',
    is403AboutOne: true,
  },
  { dataset: 'twitter', provider: 'x', payload: slotAt(TODAY), empty: 'failed' },
  { dataset: 'twitter-sentiment', provider: 'x', payload: slotAt(TODAY), empty: 'failed' },
  { dataset: 'governance', provider: 'snapshot', payload: slotAt(TODAY), empty: 'unserved' },
  { dataset: 'governors', provider: 'ethereum', host: 'rpc', payload: slotAt(HOUR), empty: 'failed' },
  { dataset: 'delegations', provider: 'ethereum', host: 'rpc', payload: slotAt(HOUR), empty: 'failed' },
  { dataset: 'dex-trades', provider: 'ethereum', host: 'rpc', payload: slotAt(HOUR), empty: 'failed' },
  { dataset: 'dex-trades', provider: 'moralis-swaps', host: 'moralis', payload: slotAt(HOUR), empty: 'stored' },
  { dataset: 'daos', provider: 'coinmarketcap', payload: slotAt(TODAY), empty: 'unserved' },
  { dataset: 'daos', provider: 'defillama', payload: slotAt(TODAY), empty: 'unserved' },
  { dataset: 'daos', provider: 'coingecko', payload: slotAt(TODAY), empty: 'failed' },
]

const hostOf = ({ provider, host = provider }: Source) => host

describe.each(SOURCES)('$dataset of $provider ($payload.kind)', (source) => {
  const { dataset, provider, payload } = source
  const host = hostOf(source)
  const job = jobOf(dataset)
  const run = async (ids: readonly string[]) => runFor(pipeline, job, payload, { ids, providers: [provider] })

  const cases: [string, Fault, string][] = [
    ['a connection that breaks midway', { kind: 'truncate' }, 'provider_unavailable'],
    ['half of an answer', { kind: 'cut' }, 'provider_malformed'],
    ['403', { kind: 'status', status: 403 }, 'provider_rejected'],
    ['503', { kind: 'status', status: 503 }, 'provider_unavailable'],
    ['another shape', { kind: 'shape' }, 'provider_malformed'],
  ]
  // The HTTP client, which all providers use, detects these for any request.
  const ofClient = ['truncate', 'cut', '503']
  const isFirstOfHost = SOURCES.find((one) => hostOf(one) === host) === source
  const isReported = ([name, { kind }]: (typeof cases)[number]) =>
    !(source.isPage && kind === 'cut') &&
    !(source.is403AboutOne && name === '403') &&
    (isFirstOfHost || !(ofClient.includes(kind) || ofClient.includes(name)))
  it.each(cases.filter(isReported))(
    'records a failure and retries the same entities after %s',
    async (_, fault, code) => {
      const entities = toSample(pipeline, source)
      const ids = entities.map(({ id }) => id)
      pipeline.upstream.faults.set(host, fault)
      const failed = await run(ids)
      expect(failed).toMatchObject({ code, again: ids })
      const ledger = await readLedger(pipeline, job, entities)
      expect(ledger).toHaveLength(2)
      for (const { state, reason } of ledger) {
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

  it('maps an empty response to its documented meaning', async () => {
    const entities = toSample(pipeline, source)
    pipeline.upstream.faults.set(host, { kind: 'empty' })
    const outcome = await run(entities.map(({ id }) => id))
    expect(outcome.code === undefined).toBe(source.empty !== 'failed')
    expect(statesOf(await readLedger(pipeline, job, entities))).toEqual([source.empty])
  })
})
