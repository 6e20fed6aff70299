import { z } from 'zod'

/**
 * What the members of the registry amount to together on one UTC day, in USD. `recorded_at` is the day's start,
 * `member_count` how many had a value that day, `computed_at` when the computation began. `withdrawn` is 1 once a day
 * that had members has none.
 */
export const dailySumRow = z.strictObject({
  recorded_at: z.iso.datetime(),
  value_usd: z.number().nonnegative(),
  member_count: z.int().nonnegative(),
  computed_at: z.iso.datetime(),
  withdrawn: z.literal([0, 1]),
})

export type DailySumRow = z.infer<typeof dailySumRow>
