import { renameSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { toOpenApi } from '../api/openapi/document.ts'
import type { OpenApi, Operation } from '../api/openapi/shape.ts'
import { routes } from '../api/routes.ts'

/** The document that both clients are generated from, as clients read it. */
export const document: OpenApi = JSON.parse(JSON.stringify(toOpenApi([...routes])))

/** The operations of a tag: a group of methods of a client. */
export interface Group {
  /** In lower case: a member of a client. */
  readonly name: string
  readonly description: string
  readonly operations: readonly (Operation & { readonly path: string })[]
}

export const groups: readonly Group[] = document.tags.map(({ name, description }) => ({
  name: name.toLowerCase(),
  description,
  operations: Object.entries(document.paths)
    .map(([path, { get }]) => ({ path, ...get }))
    .filter(({ tags }) => tags.includes(name)),
}))

/** Writes atomically, because another program may be reading the file. */
export function writeSource(file: string, text: string): void {
  const next = join(dirname(file), `.${basename(file)}.${process.pid}`)
  writeFileSync(next, text)
  renameSync(next, file)
}
