import { Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { readStoredRows, toColumnTypes } from '../../api/prices/points.ts'
import { packRows, unpackRows, writeJson } from '../../api/prices/stored-rows.ts'
import type { StoredRows } from '../../api/route/stored-points.ts'
import { DataError } from '../../shared/errors.ts'
import { noDatabase } from '../support/no-database.ts'
import { PRICE_VECTORS } from '../support/price-codes.ts'

const START = Date.parse('2024-01-01T00:00:00Z')
const STEP_MS = 300_000

const text = (value: string) => Buffer.concat([Buffer.of(value.length), Buffer.from(value)])
const int64s = (values: readonly bigint[]) => Buffer.from(BigInt64Array.from(values).buffer)
const toNulls = (values: readonly unknown[]) => Buffer.from(values.map((value) => Number(value === null)))
const codes = (values: readonly (string | null)[]) =>
  Buffer.concat([toNulls(values), int64s(values.map((value) => BigInt(value ?? 0)))])
const floats = (values: readonly (number | null)[]) =>
  Buffer.concat([toNulls(values), Buffer.from(Float64Array.from(values, (value) => value ?? 0).buffer)])

/** The rows of some vectors as a block of ClickHouse's Native format, one for each step from `first` steps after `START`. */
function toBlock(vectors: typeof PRICE_VECTORS, first: number): Buffer {
  const columns = [
    ['token', 'UInt64', int64s(vectors.map(() => 1n))],
    ['observed_at', "DateTime64(3, 'UTC')", int64s(vectors.map((_, at) => BigInt(START + (first + at) * STEP_MS)))],
    ['price_code', 'Int64', int64s(vectors.map(({ price_code }) => BigInt(price_code)))],
    ['circulating_supply', 'Nullable(Float64)', floats(vectors.map((vector) => vector.circulating_supply))],
    ['market_cap_code', 'Nullable(Int64)', codes(vectors.map(({ market_cap_code }) => market_cap_code))],
    ['volume_24h_code', 'Nullable(Int64)', codes(vectors.map(({ volume_24h_code }) => volume_24h_code))],
    ['total_supply', 'Nullable(Float64)', floats(vectors.map(() => null))],
  ] as const
  const head = Buffer.of(columns.length, vectors.length)
  return Buffer.concat([head, ...columns.flatMap(([name, type, data]) => [text(name), text(type), data])])
}

const read = async (bytes: Buffer) => {
  const db = { ...noDatabase, stream: async () => Readable.from([bytes]) }
  const range = { token: 1, from: START, to: START + PRICE_VECTORS.length * STEP_MS }
  const [rows] = (await readStoredRows(db, '5m', [range])) as [StoredRows]
  const values = (read: StoredRows) =>
    JSON.parse(`[${writeJson(read).bytes}]`).map(({ quote }: { quote: { USD: object } }) => quote.USD)
  expect(values(unpackRows(packRows(rows), toColumnTypes('5m')))).toEqual(values(rows))
  return values(rows)
}

describe('readStoredRows', () => {
  it('decodes the codes of the golden vectors to their values', async () => {
    const values = PRICE_VECTORS.map(({ price, volume_24h, market_cap, circulating_supply }) => ({
      ...{ price, volume_24h, market_cap, circulating_supply },
    }))
    expect(await read(toBlock(PRICE_VECTORS, 0))).toMatchObject(values)
    const blocks = [toBlock(PRICE_VECTORS.slice(0, 3), 0), toBlock(PRICE_VECTORS.slice(3), 3)]
    expect(await read(Buffer.concat(blocks))).toMatchObject(values)
  })

  it('throws for an answer without some columns', async () => {
    const [token, time] = [int64s([1n]), int64s([BigInt(START)])]
    const columns = [text('token'), text('UInt64'), token, text('observed_at'), text("DateTime64(3, 'UTC')"), time]
    await expect(read(Buffer.concat([Buffer.of(2, 1), ...columns]))).rejects.toThrow(
      /only the columns token, observed_at/,
    )
  })

  it('throws for an answer that ends early', async () => {
    await expect(read(toBlock(PRICE_VECTORS, 0).subarray(0, -3))).rejects.toThrow(DataError)
  })
})
