import type { TimeRange } from '../intervals.ts'
import type { Lifetime } from './entities.ts'
import type { Registry } from './registry.ts'

/** Whether the entity is collected at a time in Unix milliseconds. */
export const isThereAt = ({ until = Number.POSITIVE_INFINITY }: Lifetime, at: number): boolean => at < until

/**
 * The part of a range before the entity's end. Empty (`to` is not after `from`) if the entity ended before the range.
 */
export const untilEnd = <R extends TimeRange>(range: R, { until = Number.POSITIVE_INFINITY }: Lifetime): R => ({
  ...range,
  to: Math.min(range.to, until),
})

/** Groups entities by their part of a range. Entities that ended before the range are omitted. */
export function groupByEnd<E extends Lifetime, R extends TimeRange>(
  entities: readonly E[],
  range: R,
): { readonly range: R; readonly entities: readonly E[] }[] {
  const groups = new Map<number, { range: R; entities: E[] }>()
  for (const entity of entities) {
    const own = untilEnd(range, entity)
    if (own.from >= own.to) continue
    const group = groups.get(own.to) ?? { range: own, entities: [] }
    groups.set(own.to, group)
    group.entities.push(entity)
  }
  return [...groups.values()]
}

/**
 * Parameters of a statement that sums registry members by day: the keys of members with a start or end, and the times
 * in Unix seconds. A token counts up to its exchange and its successor from then on, so each day counts exactly one of
 * them.
 */
export function toLifetimes(members: readonly (Lifetime & { readonly key: number })[]) {
  const pick = (member: 'since' | 'until') =>
    members.flatMap(({ key, [member]: at }) => (at === undefined ? [] : [{ key, at: at / 1000 }]))
  const [started, ended] = [pick('since'), pick('until')]
  return {
    begun: started.map(({ key }) => key),
    begunAt: started.map(({ at }) => at),
    ended: ended.map(({ key }) => key),
    endedAt: ended.map(({ at }) => at),
  }
}

const current = new WeakMap<Registry, () => Registry>()

/** A registry that reads each member from the current result of `now`. */
export function liveProxy(now: () => Registry): Registry {
  const living = new Proxy(now(), { get: (_, member) => Reflect.get(now(), member) })
  current.set(living, now)
  return living
}

/** The current registry of a live proxy, or another registry itself: its members are consistent with each other. */
export const snapshot = (registry: Registry): Registry => current.get(registry)?.() ?? registry
