import type { Registry } from './registry.ts'

const current = new WeakMap<Registry, () => Registry>()

/** Returns a live proxy: each property read goes to the current registry of `now`. */
export function toLiving(now: () => Registry): Registry {
  const living = new Proxy(now(), { get: (_, member) => Reflect.get(now(), member) })
  current.set(living, now)
  return living
}

/** Returns a snapshot of a live registry, so that several reads are consistent. */
export const toFixed = (registry: Registry): Registry => current.get(registry)?.() ?? registry
