import { z } from 'zod'

/** There are fewer people. */
export const MOST_PEOPLE = 1e10

const countOrNull = z.int().nonnegative().max(MOST_PEOPLE).nullable()

/**
 * How many members a DAO's community has on a day, and how many of them are active (online as the network counts).
 * Unknown is null; a row in which all is unknown is rejected.
 */
export const membersRow = z
  .strictObject({
    dao: z.int().nonnegative(),
    observed_at: z.iso.datetime(),
    active_members: countOrNull,
    total_members: countOrNull,
  })
  .refine(({ active_members, total_members }) => (active_members ?? total_members) !== null, 'no count')

export type MembersRow = z.infer<typeof membersRow>
