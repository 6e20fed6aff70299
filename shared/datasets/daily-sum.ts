import { z } from 'zod'

/**
 * The sum of the registry members' values on one UTC day, in USD. `recorded_at` is the start of the day, `member_count`
 * the number of members with a value, `computed_at` the start of the computation. `withdrawn` is 1 if a day that had
 * members now has none.
 */
export const dailySumRow = z.strictObject({
  recorded_at: z.iso.datetime(),
  value_usd: z.number().nonnegative(),
  member_count: z.int().nonnegative(),
  computed_at: z.iso.datetime(),
  withdrawn: z.literal([0, 1]),
})

export type DailySumRow = z.infer<typeof dailySumRow>
