import { DataError, isTransient, toReason } from '../shared/errors.ts'
import type { Logger } from '../shared/log.ts'
import type { Collector, Entity, Range } from './define.ts'
import type { JobState } from './state.ts'

interface Collected {
  rows: { row: object; provider: string }[]
  /** The providers that answered. */
  providers: string[]
  /** How many entities no provider had an answer for. */
  uncovered: number
  /** A failure that leaves a part of a range to be fetched again, once what came is stored. */
  pending: DataError | undefined
}

interface Wanted {
  entities: readonly Entity[]
  /** The row member that holds the entity's key; without one every answer is about all of them. */
  entityColumn: string | undefined
  slot: number
  range: Range | undefined
  state: JobState
  signal: AbortSignal
}

/**
 * Asks the providers in order. The first asks for all it covers; the next only for what is left: those that failed,
 * those the ones before do not cover and, for a slot, those they did not know. In a range no answer is an answer (a
 * token has no history before its launch), so the next provider is not asked for it.
 * @throws DataError when none answered at all: a failure that may pass, where there is one, else the first.
 */
export async function collect(collectors: readonly Collector[], wanted: Wanted, log: Logger): Promise<Collected> {
  const rows: Collected['rows'] = []
  const providers: string[] = []
  const failures: DataError[] = []
  let left = wanted.entities
  for (const collector of collectors) {
    const asked = left.filter((entity) => collector.covers(entity))
    if (asked.length === 0) continue
    try {
      const answer = await collector.collect({
        ...wanted,
        entities: asked,
        log: log.child({ provider: collector.provider }),
      })
      for (const row of answer) rows.push({ row, provider: collector.provider })
      providers.push(collector.provider)
      const settled = toSettled(asked, answer, wanted)
      left = left.filter((entity) => !settled.has(entity.key))
    } catch (error) {
      if (!(error instanceof DataError)) throw error
      failures.push(error)
      log.warn({ provider: collector.provider, entities: asked.length, reason: toReason(error) }, 'provider failed')
    }
  }
  const transient = failures.find(isTransient)
  const reason = transient ?? failures[0]
  if (providers.length === 0 && reason !== undefined) throw reason
  const pending = wanted.range !== undefined && left.length > 0 ? transient : undefined
  return { rows, providers, uncovered: left.length, pending }
}

/** The keys of the entities that need no other provider. */
function toSettled(asked: readonly Entity[], answer: readonly object[], wanted: Wanted): Set<unknown> {
  const { entityColumn, range } = wanted
  if (range !== undefined || entityColumn === undefined) return new Set(asked.map((entity) => entity.key))
  return new Set(answer.map((row) => Reflect.get(row, entityColumn)))
}
