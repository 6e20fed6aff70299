/** Values of one quote, and the codes under which they are stored. Codes are 64-bit integers as text. */
interface PriceVector {
  readonly price: number
  readonly price_code: string
  readonly volume_24h: number | null
  readonly volume_24h_code: string | null
  readonly market_cap: number | null
  readonly market_cap_code: string | null
  readonly circulating_supply: number | null
}

const toVector = (
  [price, price_code]: [number, string],
  [volume_24h, volume_24h_code]: [number, string] | [null, null],
  [market_cap, market_cap_code]: [number, string] | [null, null],
  circulating_supply: number | null,
): PriceVector => ({
  ...{ price, price_code, volume_24h, volume_24h_code, market_cap, market_cap_code, circulating_supply },
})

/**
 * Golden vectors of the price codes. Two implementations have to agree with them: the functions of
 * `clickhouse/migrations/002_prices.sql` (test/integration/price-codes.test.ts) and the decoder of
 * `api/prices/points.ts` (test/unit/stored-points.test.ts).
 */
export const PRICE_VECTORS: readonly PriceVector[] = [
  // Digits with a place, and a market cap that is price times supply.
  toVector([7.246, '-579684'], [12.5, '-10003'], [21.738, '0'], 3),
  toVector([1, '-10'], [1e-12, '-16'], [null, null], 7),
  toVector([499_999_999_999_999, '-3999999999999994'], [null, null], [null, null], null),
  // The bits of a Float64, and the bits of a market cap without a supply.
  toVector([0.30000000000000004, '4599075939470750516'], [0, '0'], [5.5, '4617878467915022336'], null),
  toVector([500_000_000_000_000, '4826851601286430720'], [-1.5, '-4613937818241073152'], [null, null], null),
  toVector([5e-324, '1'], [null, null], [null, null], null),
  // The difference between the bits of a market cap and those of price times supply.
  toVector([7.246, '-579684'], [null, null], [21.75, '3377699720528'], 3),
]
