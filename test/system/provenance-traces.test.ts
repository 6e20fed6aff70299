import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { z } from 'zod'
import type { DatasetFacts } from '../../shared/datasets/define-dataset.ts'
import { datasets } from '../../shared/datasets/list.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { createDatabase, type Database } from '../../shared/store/store.ts'
import { countCases, SEED } from '../support/cases.ts'
import { createTestConfig } from '../support/database.ts'
import { type Demo, startDemo } from '../support/demo.ts'

interface Trace {
  readonly observedAt: string
  readonly provider: string | null
  readonly values: Readonly<Record<string, unknown>>
  readonly answers: readonly { readonly used: boolean; readonly sha256: string | null }[]
  readonly computedFrom: readonly Input[]
  readonly more: number
}

interface Input {
  readonly values: { readonly usd: number | null; readonly price?: number; readonly quantity?: string }
  readonly request: string
}

/** Traces of each dataset in a usual run. */
const USUAL = 100
/** Inputs that are followed for each traced sum. */
const FOLLOWED = 5
/** Ratings are read from a file of the operator. */
const NO_REQUESTS = ['ratings']

const registry = loadRegistry()
const stored = z.object({ entity: z.int(), at: z.int() })

describe('traces of stored values', () => {
  let demo: Demo
  let db: Database
  const times: number[] = []
  beforeAll(async () => {
    demo = await startDemo()
    const settings = { CLICKHOUSE_DATABASE: inject('stores').demo }
    db = createDatabase(createTestConfig(settings).clickhouse, 'read')
  })
  afterAll(async () => {
    await db?.close()
    await demo?.close()
    const [middle, late] = [0.5, 0.95].map((share) => times.sort((a, b) => a - b)[Math.floor(times.length * share)])
    console.log(`${times.length} traces: median ${middle?.toFixed(1)} ms, p95 ${late?.toFixed(1)} ms`)
  })

  const idOf = ({ series }: DatasetFacts, key: number): string | undefined => {
    const entities = series.entity === 'token' ? registry.tokens : series.entity === 'dao' ? registry.daos : []
    return entities.find((one) => one.key === key)?.id
  }

  /** Random stored values: the parameters of their traces. */
  async function selectValues(dataset: DatasetFacts): Promise<readonly { query: string; at: string }[]> {
    const { table, entity = '0', time } = dataset.series
    const rows = await db.rows({
      name: 'values',
      sql: `SELECT DISTINCT toUInt64(${entity}) AS entity, toUnixTimestamp64Milli(toDateTime64(${time}, 3, 'UTC')) AS at
FROM ${table} FINAL ORDER BY sipHash64(entity, at, ${SEED}) LIMIT ${countCases(USUAL)}`,
      schema: stored,
    })
    return rows.map(({ entity: key, at: ms }) => {
      const [id, at] = [idOf(dataset, key), new Date(ms).toISOString()]
      return { query: `dataset=${dataset.name}${id === undefined ? '' : `&id=${id}`}&at=${at}`, at }
    })
  }

  async function trace(request: string): Promise<Trace> {
    const began = performance.now()
    const response = await fetch(demo.url + request)
    const text = await response.text()
    times.push(performance.now() - began)
    expect(response.status, `${request}: ${text}`).toBe(200)
    return JSON.parse(text) as Trace
  }

  it.each(datasets.map((dataset) => [dataset.name, dataset as DatasetFacts] as const))(
    'of %s have their origin',
    async (name, of) => {
      const values = await selectValues(of)
      expect(values.length).toBeGreaterThan(0)
      let answered = 0
      for (const { query, at } of values) {
        const found = await trace(`/data/provenance?${query}`)
        expect(found.observedAt, query).toBe(at)
        expect(Object.keys(found.values).length, query).toBeGreaterThan(0)
        if (found.answers.some(({ used }) => used)) answered += 1
        if (of.computedFrom !== undefined) await expectReproduced(name, query, found)
      }
      if (of.computedFrom === undefined && !NO_REQUESTS.includes(name)) expect(answered).toBeGreaterThan(0)
      console.log(`${name}: ${values.length} traces, ${answered} with answers that were used`)
    },
  )

  /** Adds the inputs up, and finds each followed input in the stored value that its own trace shows. */
  async function expectReproduced(name: string, query: string, { values, computedFrom, more }: Trace): Promise<void> {
    expect([computedFrom.length > 0, more], query).toEqual([true, 0])
    const sum = computedFrom.reduce((total, input) => total + (input.values.usd ?? Number.NaN), 0)
    expect(sum / Number(values.value_usd), query).toBeCloseTo(1, 9)
    for (const { request, values: input } of computedFrom.slice(0, FOLLOWED)) {
      const { values: source } = await trace(request)
      if (name === 'index') {
        expect(source.price, request).toBe(input.price)
        expect(Number(input.quantity) * Number(source.price), request).toBeCloseTo(input.usd ?? Number.NaN, 9)
      } else if (name === 'market-cap') {
        expect(source.market_cap, request).toBe(input.usd)
        expect((Number(source.price) * Number(source.circulating_supply)) / (input.usd ?? 0), request).toBeCloseTo(1, 2)
      } else expect(source.value_usd, request).toBe(input.usd)
    }
  }
})
