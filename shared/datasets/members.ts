import { z } from 'zod'

/** More than the number of people on earth. */
export const MOST_PEOPLE = 1e10

const countOrNull = z.int().nonnegative().max(MOST_PEOPLE).nullable()

/**
 * The members of a DAO's community on a day, and the active ones (online, as counted by the network). Unknown is null;
 * a row with only unknown counts is rejected.
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
