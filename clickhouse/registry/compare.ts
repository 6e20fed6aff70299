import type { RegistryFile } from '../../shared/registry/registry-file.ts'
import { INDEX, type RegistrySource } from '../../shared/registry/source.ts'

/** Returns the differences between two registries, a line per record. */
export function compareSources(before: RegistrySource, after: RegistrySource): string[] {
  const [old, now] = [before.files, after.files]
  return [
    ...compareLists('categories', old.categories, now.categories, ({ slug }) => slug),
    ...compareLists('chains', old.chains, now.chains, ({ slug }) => slug),
    // Symbols are not unique.
    ...compareLists('tokens', old.tokens, now.tokens, ({ symbol, chain, contractAddress }) => {
      return `${symbol} (${chain}/${contractAddress})`
    }),
    ...compareLists('daos', old.daos, now.daos, ({ slug }) => slug),
    ...(JSON.stringify(before.index) === JSON.stringify(after.index) ? [] : [`${INDEX}: changed`]),
  ]
}

function compareLists<T>(
  list: string,
  { records: before }: RegistryFile<T>,
  { records: after }: RegistryFile<T>,
  nameOf: (record: T) => string,
): string[] {
  const toTexts = (records: RegistryFile<T>['records']) =>
    new Map(records.map(({ record }) => [nameOf(record), JSON.stringify(record)]))
  const [old, now] = [toTexts(before), toTexts(after)]
  const gone = [...old.keys()].filter((name) => !now.has(name)).map((name) => `${list}: ${name} gone`)
  const changed = [...now].flatMap(([name, text]) => {
    const was = old.get(name)
    return was === text ? [] : [`${list}: ${name} ${was === undefined ? 'added' : 'changed'}`]
  })
  if (gone.length + changed.length > 0) return [...gone, ...changed]
  return [...old.keys()].join('\n') === [...now.keys()].join('\n') ? [] : [`${list}: in another order`]
}
