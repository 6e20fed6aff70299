import { Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { readStoredPoints } from '../../api/prices/stored-points.ts'
import { DataError } from '../../shared/errors.ts'
import { noDatabase } from '../support/no-database.ts'
import { PRICE_VECTORS } from '../support/price-codes.ts'

const START = Date.parse('2024-01-01T00:00:00Z')
const STEP_MS = 300_000

const int64 = (value: bigint) => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigInt64LE(value)
  return bytes
}
const float64 = (value: number) => {
  const bytes = Buffer.alloc(8)
  bytes.writeDoubleLE(value)
  return bytes
}
const nullable = (value: Buffer | null) => (value === null ? Buffer.of(1) : Buffer.concat([Buffer.of(0), value]))
const code = (text: string | null) => nullable(text === null ? null : int64(BigInt(text)))

/** The rows of the vectors as ClickHouse's RowBinary, one for each step from `START`. */
const toBytes = () =>
  Buffer.concat(
    PRICE_VECTORS.flatMap(({ price_code, circulating_supply, market_cap_code, volume_24h_code }, at) => [
      ...[int64(1n), int64(BigInt(START + at * STEP_MS)), int64(BigInt(price_code))],
      nullable(circulating_supply === null ? null : float64(circulating_supply)),
      ...[code(market_cap_code), code(volume_24h_code), nullable(null)],
    ]),
  )

const read = async (bytes: Buffer) => {
  const db = { ...noDatabase, stream: async () => Readable.from([bytes]) }
  const range = { token: 1, from: START, to: START + PRICE_VECTORS.length * STEP_MS }
  const [rows] = await readStoredPoints(db, '5m', [range])
  return JSON.parse(`[${rows?.bytes}]`).map(({ quote }: { quote: { USD: object } }) => quote.USD)
}

describe('readStoredPoints', () => {
  it('decodes the codes of the golden vectors to their values', async () => {
    const values = PRICE_VECTORS.map(({ price, volume_24h, market_cap, circulating_supply }) => ({
      ...{ price, volume_24h, market_cap, circulating_supply },
    }))
    expect(await read(toBytes())).toMatchObject(values)
  })

  it('throws for an answer that ends within a row', async () => {
    await expect(read(toBytes().subarray(0, -3))).rejects.toThrow(DataError)
  })
})
