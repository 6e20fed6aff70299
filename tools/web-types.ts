import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import openapiTS, { astToString } from 'openapi-typescript'
import { toOpenApi } from '../api/openapi/document.ts'
import { routes } from '../api/routes.ts'

/** The types of every request and answer, for the page: what the interface has no more, the page cannot use. */
const document = JSON.parse(JSON.stringify(toOpenApi([...routes])))
const types = astToString(await openapiTS(document))
writeFileSync(join(import.meta.dirname, '../web/schema.d.ts'), types)
