import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { DataError } from '../errors.ts'
import { replaceFile } from '../replace-file.ts'
import { type Composition, toComposition, toElements } from './index-records.ts'
import { compositionRecord, type ElementRecord, elementRecord } from './index-schema.ts'
import type { Registry } from './registry.ts'

/** An operator's proposal: the members of the new basket. */
const proposal = z.array(elementRecord).min(1, 'must have at least one element')

/** A valid change of the basket, as records and as resolved compositions. */
export interface Rebalance {
  readonly before: Composition
  readonly after: Composition
  /** False if the newest composition has the same content. */
  readonly isChange: boolean
  readonly record: { readonly validFrom: string; readonly elements: readonly ElementRecord[] }
}

/**
 * Checks a proposed composition against the registry: live tokens with prices, each once, positive quantities, and a
 * time after the newest composition's.
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
 * Adds a composition to index.json of a registry's folder.
 * @throws DataError `registry` if the file now has a composition that is not earlier, or as `replaceFile`.
 */
export function addComposition(dir: string, record: Rebalance['record']): void {
  const path = join(dir, 'index.json')
  const make = () => {
    const content = indexFile.parse(JSON.parse(readFileSync(path, 'utf8')))
    const last = content.compositions.at(-1)
    // The plan is based on an earlier version of the file.
    if (last !== undefined && Date.parse(last.validFrom) >= Date.parse(record.validFrom))
      throw new DataError(
        'registry',
        `a composition from ${last.validFrom} on was added by another run: start this one again`,
      )
    return `${JSON.stringify({ ...content, compositions: [...content.compositions, record] }, null, 2)}\n`
  }
  replaceFile(path, make, { code: 'registry' })
}
