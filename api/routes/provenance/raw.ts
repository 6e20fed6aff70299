import { z } from 'zod'
import { readBodies } from '../../../shared/store/store.ts'
import { Problem } from '../../problem/problem.ts'
import { defineRoute } from '../../route/define-route.ts'

const EXAMPLE = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

/** A stored body never changes, but it may expire. */
const HOLDS_MS = 60_000

export const provenanceRawRoute = defineRoute({
  operation: 'getProvenanceRaw',
  path: '/data/provenance/raw',
  tag: 'Service',
  summary: 'A stored answer of a provider',
  description:
    'The body of an answer by its hash in `/data/provenance`, without keys. Off by default, because the terms of some providers do not allow it: the operator turns it on with `PROVENANCE_RAW=true`. Else the answer is 404, as for an unknown or expired hash.',
  query: {
    hash: z
      .string()
      .regex(/^[0-9a-f]{64}$/, 'must be a SHA-256 hash: 64 lower-case hexadecimal characters')
      .meta({ description: 'SHA-256 of the body, in hexadecimal.', examples: [EXAMPLE] }),
  },
  response: z.string().describe('The body as received.'),
  contentType: 'application/octet-stream',
  headers: { 'Content-Disposition': '`attachment`: browsers save the body and do not show it.' },
  datasets: [],
  mayHaveNoData: true,
  handle: async ({ db, config, query, now }) => {
    if (!config.rawAnswers.isServed)
      throw new Problem('not_found', 'Stored answers are not served here: PROVENANCE_RAW is off.', { param: 'hash' })
    const body = (await readBodies(db, [query.hash])).get(query.hash)
    if (body === undefined) throw new Problem('not_found', 'No answer with this hash is stored.', { param: 'hash' })
    if (body.omitted !== '')
      throw new Problem('not_found', `The body of this answer is not stored: ${body.omitted}.`, { param: 'hash' })
    const headers = { 'Content-Disposition': `attachment; filename="${query.hash}"` }
    return { body: Buffer.from(body.body), headers, asOf: null, expiresAt: now() + HOLDS_MS }
  },
})
