import { statSync } from 'node:fs'

/** When a file of the registry last changed, in Unix milliseconds: the age of answers that come from it alone. */
export function toFileTime(file: 'categories.json' | 'chains.json' | 'daos.json' | 'tokens.json'): number {
  return statSync(new URL(`../../shared/registry/${file}`, import.meta.url)).mtime.getTime()
}
