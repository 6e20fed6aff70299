import { z } from 'zod'
import { percent, timeValue, uint32, usd } from '../record-values.ts'
import type { Lifetime } from '../registry/entities.ts'
import type { Registry } from '../registry/registry.ts'
import type { DayMembers } from './day-members.ts'
import type { DatasetFacts } from './define-dataset.ts'
import { type DailySeries, defineSeries } from './define-series.ts'

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

/** The names and the meaning of a sum over all members of the registry. */
interface SumNames {
  /** The member with the sum, the schema name of a point, and the summed quantity. */
  readonly sum: { readonly name: string; readonly series: string; readonly of: string }
  /** The member with the count, and the counted noun. */
  readonly count: { readonly name: string; readonly noun: string }
  /** SQL for each member's part of a day's sum. */
  readonly members: DayMembers
  /** All possible members. */
  readonly all: (registry: Registry) => readonly (Lifetime & { readonly key: number })[]
}

/** A series of daily sums as stored, and the record of its points that compare like for like. */
export interface DailySumSeries extends DailySeries, Pick<SumNames, 'members' | 'all'> {
  readonly likeForLike: z.ZodObject
}

/** Declares daily sums. Both records have the same members, so that `fields` has the same meaning. */
export function defineSums(dataset: DatasetFacts, { sum, count, members, all }: SumNames): DailySumSeries {
  const metadata = (which: string) =>
    z.strictObject({ [count.name]: uint32.describe(`${count.noun} that ${which}.`) }).describe('The parts of the sum.')
  const toPoint = (shape: z.ZodRawShape, description: string) =>
    z.strictObject({
      recordedAt: timeValue.describe('The first moment of the day, in UTC.'),
      [sum.name]: z.strictObject(shape).describe(description),
    })
  const plain = { value: usd.describe('The sum in US dollars.'), metadata: metadata('have a part in the sum') }
  const likeForLike = {
    value: usd.describe('The sum in US dollars over the members with a value on both days.'),
    before: usd.describe('The sum over the same members on the earlier day, in US dollars.'),
    change: percent.describe('Change from `before` to `value`, in percent.'),
    metadata: metadata('have a value on both days'),
  }
  const series = defineSeries(dataset, {
    record: toPoint(plain, `${sum.of}.`).meta({ id: sum.series, description: `${sum.of} on one day.` }),
    values: { value_usd: 'value_usd', member_count: 'member_count' },
  })
  return {
    ...{ ...series, members, all },
    likeForLike: toPoint(likeForLike, `${sum.of}, over the members with a value on both days.`).meta({
      id: `LikeForLike${sum.series}`,
      description: `${sum.of} on one day compared with an earlier day, over the members with a value on both days. With \`basis=like-for-like\`.`,
    }),
  }
}
