import type { TimeRange } from '../intervals.ts'
import type { Registry } from './registry.ts'

/** Why and from which day on a token or a DAO is no more. */
export interface Ended {
  /** The first UTC day without it, as an ISO date. */
  readonly at: string
  readonly reason: string
}

/** From when on and until when something stands for itself, in Unix milliseconds; without them always. */
export interface Lifetime {
  /** The first moment at which it counts: what another token of its DAO turned into counts from that token's end on. */
  readonly since?: number
  /** The first moment without it: nothing is collected of it from then on, and it counts on the days before. */
  readonly until?: number
}

/** Whether something is still collected at a time in Unix milliseconds. */
export const isThereAt = ({ until = Number.POSITIVE_INFINITY }: Lifetime, at: number): boolean => at < until

/** What of a range something is still there. It is empty (`to` is not after `from`) for what ended before. */
export const untilEnd = <R extends TimeRange>(range: R, { until = Number.POSITIVE_INFINITY }: Lifetime): R => ({
  ...range,
  to: Math.min(range.to, until),
})

/** Those with the same part of a range in which they are still there, by that part. Who ended before it is left out. */
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
 * The parameters of a statement that sums members of the registry by day: the keys of those that end or begin, and when,
 * in Unix seconds. A token that was exchanged for another one counts up to that day, and its successor from then on:
 * neither is missing on a past day, and no day counts both.
 */
export function toLifetimes(members: readonly (Lifetime & { readonly key: number })[]) {
  const pick = (member: 'since' | 'until') =>
    members.flatMap(({ key, [member]: at }) => (at === undefined ? [] : [{ key, at: at / 1000 }]))
  const [begun, ended] = [pick('since'), pick('until')]
  return {
    begun: begun.map(({ key }) => key),
    begunAt: begun.map(({ at }) => at),
    ended: ended.map(({ key }) => key),
    endedAt: ended.map(({ at }) => at),
  }
}

const current = new WeakMap<Registry, () => Registry>()

/** A registry whose members are those that `now` has at the moment when they are read. */
export function toLiving(now: () => Registry): Registry {
  const living = new Proxy(now(), { get: (_, member) => Reflect.get(now(), member) })
  current.set(living, now)
  return living
}

/** A registry as it is now, whose members fit each other from then on. */
export const toFixed = (registry: Registry): Registry => current.get(registry)?.() ?? registry
