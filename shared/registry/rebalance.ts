import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { DataError, toReason } from '../errors.ts'
import { type Composition, toComposition, toElements } from './index-records.ts'
import { compositionRecord, type ElementRecord, elementRecord } from './index-schema.ts'
import type { Registry } from './registry.ts'

/** What an operator proposes: the members of the basket from then on. */
const proposal = z.array(elementRecord).min(1, 'must have at least one element')

/** A change of the basket that may be made, as it is written and as it is meant. */
export interface Rebalance {
  readonly before: Composition
  readonly after: Composition
  /** False when the newest composition says the same already. */
  readonly isChange: boolean
  readonly record: { readonly validFrom: string; readonly elements: readonly ElementRecord[] }
}

/**
 * Checks a proposed composition against the registry: members that are live and priced, each once, positive quantities,
 * and a time after the newest composition's.
 * @throws DataError `payload` that lists every mistake.
 */
export function planRebalance(proposed: unknown, at: string, registry: Registry): Rebalance {
  const mistakes: string[] = []
  const newest = registry.index.compositions.at(-1)
  if (newest === undefined) throw new Error('the registry was not validated')
  const time = compositionRecord.shape.validFrom.safeParse(at)
  if (!time.success) mistakes.push(`--at ${at}: ${time.error.issues[0]?.message}`)
  const parsed = proposal.safeParse(proposed)
  for (const { path, message } of parsed.error?.issues ?? []) {
    mistakes.push(`${path.length > 0 ? z.core.toDotPath(path) : 'the proposal'}: ${message}`)
  }
  const records = parsed.data ?? []
  const elements = toElements(records, registry, 'the proposal', mistakes)
  for (const { token } of elements) {
    if (!token.live || !token.livePrice) mistakes.push(`${token.symbol}: is not live, or no prices are collected of it`)
  }
  const validFrom = time.success ? Date.parse(at) : newest.validFrom
  const isChange = toComposition(newest.validFrom, elements).id !== newest.id
  if (time.success && isChange && validFrom <= newest.validFrom) {
    mistakes.push(`--at ${at} is not after the newest composition, ${new Date(newest.validFrom).toISOString()}`)
  }
  if (mistakes.length > 0) throw new DataError('payload', mistakes.join('\n'))
  const after = isChange ? toComposition(validFrom, elements) : newest
  return {
    before: newest,
    after,
    isChange,
    record: { validFrom: new Date(validFrom).toISOString(), elements: records },
  }
}

const indexFile = z.looseObject({ compositions: z.array(z.looseObject({ validFrom: z.string() })) })

/**
 * Adds a composition to index.json of a registry's folder. Readers see the file as it was or as it is, never half of it. The
 * new one is made under a name that only one process can take, so that of two changes at a time none is lost.
 * @throws DataError `registry` when another process changes the file, was killed while it did, or has added a later one.
 */
export function addComposition(dir: string, record: Rebalance['record']): void {
  const path = join(dir, 'index.json')
  const next = `${path}.new`
  try {
    writeFileSync(next, '', { flag: 'wx' })
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') throw new DataError('registry', toReason(cause), { cause })
    throw new DataError('registry', `${next} is there: another change is under way; remove it if none is`, { cause })
  }
  try {
    const content = indexFile.parse(JSON.parse(readFileSync(path, 'utf8')))
    const last = content.compositions.at(-1)
    // It was planned from the file as it was before.
    if (last !== undefined && Date.parse(last.validFrom) >= Date.parse(record.validFrom))
      throw new DataError('registry', `a composition from ${last.validFrom} on was added meanwhile`)
    const changed = { ...content, compositions: [...content.compositions, record] }
    writeFileSync(next, `${JSON.stringify(changed, null, 2)}\n`)
    renameSync(next, path)
  } catch (error) {
    rmSync(next, { force: true })
    throw error
  }
}
