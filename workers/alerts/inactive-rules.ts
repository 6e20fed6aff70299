import { type Rule, toRevision } from './rules.ts'
import type { AlertStore } from './state.ts'

/**
 * Stores which rules are paused or no longer in the file, for readers without the file. Returns the rules that are not in
 * the file; they stay as they are if the file is not confirmed to be complete.
 */
export async function storeInactive(
  rules: readonly Rule[],
  { store, isConfirmed }: { readonly store: AlertStore; readonly isConfirmed: boolean },
): Promise<readonly string[]> {
  const began = await store.readTime()
  const stored = await store.readRules()
  const inFile = new Map(rules.map((rule) => [rule.name, rule]))
  const paused = rules.flatMap((rule) => {
    const before = stored.get(rule.name)
    if (!rule.paused || before?.state === 'paused') return []
    const { what, description } = rule
    const row = { rule: rule.name, revision: toRevision(rule), state: 'paused' as const, beganAt: before?.beganAt ?? 0 }
    return [{ ...row, kind: what.kind, description }]
  })
  const missing = [...stored.values()].filter((row) => !inFile.has(row.rule) && row.state !== 'removed')
  const removed = missing.map((row) => ({ ...row, state: 'removed' as const, kind: '', description: '' }))
  await store.writeRules([...paused, ...(isConfirmed ? removed : [])], began)
  return missing.map(({ rule }) => rule)
}
