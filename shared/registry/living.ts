import type { Registry } from './registry.ts'

const current = new WeakMap<Registry, () => Registry>()

/** A registry whose members are those that `now` has at the moment when they are read. */
export function toLiving(now: () => Registry): Registry {
  const living = new Proxy(now(), { get: (_, member) => Reflect.get(now(), member) })
  current.set(living, now)
  return living
}

/** A registry as it is now, whose members fit each other from then on. */
export const toFixed = (registry: Registry): Registry => current.get(registry)?.() ?? registry
