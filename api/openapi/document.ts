import { license, version } from '../../shared/manifest.ts'
import { problemBody } from '../problem/problem.ts'
import type { Route } from '../route/define-route.ts'
import { toFailures } from './failures.ts'
import { createHeaders } from './headers.ts'
import { toLinks } from './links.ts'
import { toOperation } from './operation.ts'
import { createSchemas } from './schemas.ts'
import type { OpenApi } from './shape.ts'

/** Descriptions of the tags. */
const TAGS: Readonly<Record<string, string>> = {
  Tokens: 'Tokens of DAOs: prices, supplies, holders, and trades on decentralized exchanges.',
  DAOs: 'DAOs themselves: links, governance, treasuries, ratings and communities.',
  Aggregated: 'Sums over all tokens or all DAOs, by day.',
  Index: 'The Index, a basket of DAO tokens, and the Index Token.',
  Baskets: 'Back-tests of own baskets of DAO tokens.',
  Registry: 'Search, and the records behind ids of categories and chains.',
  Charts: 'Images for pages and lists.',
  Alerts: "Alerts of the operator's rules, as records and as feeds, and a calendar of votes.",
  Service: 'The state of the service and of its data.',
}

const DESCRIPTION = `Read-only data about decentralized organizations (DAOs) and their tokens. Times are ISO 8601 UTC, money is in US dollars, percent changes are percents (1.5 is +1.5 %), and an unknown number is null, never 0.

Lists and series come as JSON, CSV, NDJSON, Parquet or Arrow: see \`format\`. The responses describe JSON; \`x-formats\` of an operation has the media type and the columns of the others. Parquet and Arrow answer \`Range\` with 206. Where the operator publishes files, \`/published/catalog.json\` lists whole datasets as Parquet files, by month. Failures are problem+json (RFC 9457), and /docs/errors explains their codes. No key is needed.`

/** The OpenAPI 3.1 document for a list of routes, generated from the schemas that validate requests. */
export function toOpenApi(routes: readonly Route[]): OpenApi {
  const components = { schemas: createSchemas(), headers: createHeaders() }
  const tags = [...new Set(routes.map(({ tag }) => tag))]
  const paths = Object.fromEntries(
    routes.map((route) => [route.path, { get: toOperation(route, components, toLinks(route, routes)) }]),
  )
  // Only registers the schema: the failures refer to its name.
  components.schemas.toJson(problemBody, 'output')
  const responses = {
    NotModified: { description: 'The client has this answer already: `If-None-Match` names it.' },
    ...toFailures(routes, components.headers),
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'dao-data',
      version,
      summary: 'Data about DAOs, their tokens and an index of them',
      description: DESCRIPTION,
      license: { name: license, identifier: license },
    },
    servers: [{ url: '/', description: 'Where this document comes from.' }],
    security: [],
    tags: tags.map((name) => ({ name, description: TAGS[name] ?? '' })),
    paths,
    components: { schemas: components.schemas.named, responses, headers: components.headers.named },
  }
}
