import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import type { Difference } from './compare.ts'

const FILE = join(import.meta.dirname, 'explained.json')

/** The reason for an accepted difference. If the list's value changes, it is a new, unexplained difference. */
const explanation = z.strictObject({
  list: z.string(),
  of: z.string(),
  field: z.string(),
  theirs: z.string().nullable(),
  reason: z.string().min(1),
})

export type Explanation = z.infer<typeof explanation>

export type Judged = Difference & { readonly reason: string | null }

export const loadExplained = (file: string = FILE): Explanation[] =>
  z.array(explanation).parse(JSON.parse(readFileSync(file, 'utf8')))

/** Adds the reason to each difference; null if none is recorded. */
export function judge(differences: readonly Difference[], explained: readonly Explanation[]): Judged[] {
  const toName = ({ list, of, field, theirs }: Omit<Explanation, 'reason'>) => JSON.stringify([list, of, field, theirs])
  const reasons = new Map(explained.map((one) => [toName(one), one.reason]))
  return differences.map((difference) => ({ ...difference, reason: reasons.get(toName(difference)) ?? null }))
}
