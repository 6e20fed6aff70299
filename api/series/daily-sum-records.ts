import { z } from 'zod'
import { timeValue, uint32 } from '../records/values.ts'

/** Names and descriptions in the records of daily sums. */
export interface SumNames {
  /** The member with the sum, the record's schema name, and the summed quantity. */
  readonly sum: { readonly name: string; readonly series: string; readonly of: string }
  /** The member with the count, and the counted noun. */
  readonly count: { readonly name: string; readonly noun: string }
}

/**
 * Builds the schemas of a plain and a like-for-like point. Both have the same members, so that `fields` has the same
 * meaning.
 */
export function toSumRecords({ sum, count }: SumNames) {
  const metadata = (which: string) =>
    z
      .strictObject({ [count.name]: uint32.describe(`${count.noun} that ${which}.`) })
      .describe('What the sum is made of.')
  const toPoint = (members: z.ZodRawShape, description: string) =>
    z.strictObject({
      recordedAt: timeValue.describe('The day: its first moment.'),
      [sum.name]: z.strictObject(members).describe(description),
    })
  const plain = { value: z.number().describe('The sum in US dollars.'), metadata: metadata('have a part in the sum') }
  const alike = {
    value: z.number().describe('The sum in US dollars over those that have a value on the earlier day as well.'),
    before: z.number().describe('The sum over the same ones on the earlier day, in US dollars.'),
    change: z.number().describe('Change from `before` to `value`, in percent.'),
    metadata: metadata('have a value on both days'),
  }
  return {
    plain: toPoint(plain, `${sum.of}.`).meta({ id: sum.series, description: `${sum.of} on one day.` }),
    alike: toPoint(alike, `${sum.of}, of those that are in both days.`).meta({
      id: `LikeForLike${sum.series}`,
      description: `${sum.of} on one day against an earlier one, of those that are in both. With \`basis=like-for-like\`.`,
    }),
  }
}
