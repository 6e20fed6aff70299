/**
 * The closed table of all error codes (docs/contract.md, section 5). The error page and the OpenAPI document are
 * generated from it.
 */
export const PROBLEM_CODES = {
  missing_parameter: {
    status: 400,
    title: 'A required parameter is missing',
    meaning: '`param` is the parameter. Single-entity routes take one `id` or one `name`.',
    action: 'Add the parameter.',
  },
  invalid_parameter: {
    status: 400,
    title: 'A parameter has an invalid value',
    meaning: '`param` is the parameter, `detail` the reason, `allowed` the accepted values if they are few.',
    action: 'Send an accepted value.',
  },
  unknown_parameter: {
    status: 400,
    title: 'A parameter is not known here',
    meaning: '`detail` has the nearest known parameter, `allowed` all of them. Unknown parameters are never ignored.',
    action: 'Correct or remove the parameter.',
  },
  invalid_key: {
    status: 401,
    title: 'The key is not valid',
    meaning: 'The key is wrong or was revoked. Without one, requests are answered as far as the service allows.',
    action: 'Send a valid key, or none.',
  },
  not_found: {
    status: 404,
    title: 'Not found',
    meaning: 'No such path, or no entity with this id or name.',
    action: 'Compare the path with the reference, or find the entity with `/data/search`.',
  },
  no_data: {
    status: 404,
    title: 'No data yet',
    meaning: 'The requested entity exists but has no data, or not yet: `detail` has the reason.',
    action: 'Retry at the cadence of the data.',
  },
  method_not_allowed: {
    status: 405,
    title: 'The method is not allowed',
    meaning: 'The service is read-only.',
    action: 'Send one of the methods in the `Allow` header.',
  },
  not_acceptable: {
    status: 406,
    title: 'No acceptable representation',
    meaning: 'The `Accept` header excludes every media type that the path has.',
    action: 'Accept one of the media types in `allowed`.',
  },
  ambiguous_name: {
    status: 409,
    title: 'The name fits several entities',
    meaning: '`candidates` lists them with their ids.',
    action: 'Repeat the request with one `id`.',
  },
  precondition_failed: {
    status: 412,
    title: 'The precondition failed',
    meaning: '`If-Match` names other bytes than the current ones.',
    action: 'Send the current `ETag`, or no `If-Match`.',
  },
  range_not_satisfiable: {
    status: 416,
    title: 'The range is not satisfiable',
    meaning: 'The `Range` header requests bytes after the end.',
    action: 'Request less than the number of bytes in `Content-Range`.',
  },
  rate_limited: {
    status: 429,
    title: 'Too many requests',
    meaning: 'The key or the address has used its requests of this window.',
    action: 'Wait for the number of seconds in `Retry-After`.',
  },
  internal: {
    status: 500,
    title: 'Internal error',
    meaning: 'A mistake of the service.',
    action: 'Report it with its `requestId`.',
  },
  unavailable: {
    status: 503,
    title: 'Temporarily unavailable',
    meaning: 'The database is unavailable, or the service is busy.',
    action: 'Retry after the number of seconds in `Retry-After`.',
  },
} as const satisfies Record<string, { status: number; title: string; meaning: string; action: string }>

export type ProblemCode = keyof typeof PROBLEM_CODES

export const PROBLEM_CODE_NAMES = Object.keys(PROBLEM_CODES) as [ProblemCode, ...ProblemCode[]]

/** A code as one text: its title, its meaning, and what the client can do. */
export const explainCode = (code: ProblemCode) => {
  const { title, meaning, action } = PROBLEM_CODES[code]
  return `${title}. ${meaning} ${action}`
}
