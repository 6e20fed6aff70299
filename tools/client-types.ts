import { join } from 'node:path'
import openapiTS, { astToString } from 'openapi-typescript'
import { document, groups, writeSource } from './client-sources.ts'

const SOURCES = join(import.meta.dirname, '../clients/typescript/src')
const HEADER = '// Made of the OpenAPI document; not to be edited.\n'

/** The paths of all operations by tag and name; each becomes a method of the client. */
function toOperations(): string {
  const lines = groups.map(({ name, description, operations }) => {
    const methods = operations.map(
      ({ operationId, summary, path }) => `    /** ${summary}. */\n    ${operationId}: '${path}',`,
    )
    return `  /** ${description} */\n  ${name}: {\n${methods.join('\n')}\n  },`
  })
  return `export const OPERATIONS = {\n${lines.join('\n')}\n} as const\n`
}

const write = (name: string, text: string) => writeSource(join(SOURCES, name), HEADER + text)

// The types of every request and response, for the client and the page. Neither compiles with a removed part of the
// API.
write('schema.ts', astToString(await openapiTS(JSON.parse(JSON.stringify(document)))))
write('operations.ts', toOperations())
