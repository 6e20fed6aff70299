import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import openapiTS, { astToString } from 'openapi-typescript'
import { toOpenApi } from '../api/openapi/document.ts'
import type { OpenApi } from '../api/openapi/shape.ts'
import { routes } from '../api/routes.ts'

const SOURCES = join(import.meta.dirname, '../clients/typescript/src')
const HEADER = '// Made of the OpenAPI document; not to be edited.\n'

const document: OpenApi = JSON.parse(JSON.stringify(toOpenApi([...routes])))

/** The paths of all operations by tag and name; each becomes a method of the client. */
function toOperations({ tags, paths }: OpenApi): string {
  const all = Object.entries(paths).map(([path, { get }]) => ({ path, ...get }))
  const groups = tags.map(({ name, description }) => {
    const lines = all
      .filter((operation) => operation.tags.includes(name))
      .map(({ operationId, summary, path }) => `    /** ${summary}. */\n    ${operationId}: '${path}',`)
    return `  /** ${description} */\n  ${name.toLowerCase()}: {\n${lines.join('\n')}\n  },`
  })
  return `export const OPERATIONS = {\n${groups.join('\n')}\n} as const\n`
}

/** Writes atomically, because another program may be reading the file. */
function write(name: string, text: string): void {
  const next = join(SOURCES, `.${name}.${process.pid}`)
  writeFileSync(next, HEADER + text)
  renameSync(next, join(SOURCES, name))
}

// The types of every request and response, for the client and the page. Neither compiles with a removed part of the
// API.
write('schema.ts', astToString(await openapiTS(JSON.parse(JSON.stringify(document)))))
write('operations.ts', toOperations(document))
