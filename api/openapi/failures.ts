import type { z } from 'zod'
import { ANSWER_HEADERS, LIMIT_HEADERS } from '../http/headers.ts'
import { isRequired, takesSeveral } from '../parameters/parse.ts'
import { explainCode, PROBLEM_CODE_NAMES, PROBLEM_CODES, type ProblemCode } from '../problem/codes.ts'
import type { Route } from '../route/define-route.ts'
import type { Headers } from './headers.ts'
import type { Json } from './shape.ts'

/** Response names for the failures of each status. */
const NAMES: Readonly<Record<(typeof PROBLEM_CODES)[ProblemCode]['status'], string>> = {
  400: 'InvalidRequest',
  401: 'InvalidKey',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  406: 'NotAcceptable',
  409: 'AmbiguousName',
  412: 'PreconditionFailed',
  416: 'RangeNotSatisfiable',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'Unavailable',
}

const EVERY_FAILURE = { 'X-Request-Id': ANSWER_HEADERS['X-Request-Id'] }
const RETRY_AFTER = { 'Retry-After': 'Seconds until a retry can succeed.' }
const HEADERS: Readonly<Record<number, Readonly<Record<string, string>>>> = {
  405: { Allow: 'The methods that are allowed.' },
  401: { 'WWW-Authenticate': 'How a key is sent.' },
  429: { ...RETRY_AFTER, ...LIMIT_HEADERS },
  503: RETRY_AFTER,
}

/** The codes that a route can fail with. */
function toCodes(route: Route): ProblemCode[] {
  const single = 'id' in route.query && !takesSeveral(route.query.id as z.ZodType)
  const optional: [ProblemCode, boolean][] = [
    ['missing_parameter', single || Object.values(route.query).some(isRequired)],
    ['invalid_parameter', Object.keys(route.query).length > 0],
    ['not_found', single || route.path.includes('{')],
    ['no_data', route.mayHaveNoData],
    ['ambiguous_name', single && 'name' in route.query],
    ['precondition_failed', !route.volatile],
    ['range_not_satisfiable', route.record !== undefined],
  ]
  const always: ProblemCode[] = [
    ...(['unknown_parameter', 'invalid_key', 'method_not_allowed', 'not_acceptable'] as const),
    ...(['rate_limited', 'internal', 'unavailable'] as const),
  ]
  return [...optional.filter(([, holds]) => holds).map(([code]) => code), ...always]
}

const toStatuses = (route: Route) => [...new Set(toCodes(route).map((code) => PROBLEM_CODES[code].status))]

/** The responses of a route's failures, by status. */
export const toFailuresOf = (route: Route): Json =>
  Object.fromEntries(toStatuses(route).map((status) => [status, { $ref: `#/components/responses/${NAMES[status]}` }]))

/** The failures of all routes, each listed once. */
export function toFailures(routes: readonly Route[], headers: Headers): Json {
  const used = new Set(routes.flatMap(toStatuses))
  return Object.fromEntries(
    [...used].sort().map((status) => {
      const codes = PROBLEM_CODE_NAMES.filter((code) => PROBLEM_CODES[code].status === status)
      return [
        NAMES[status],
        {
          description: codes.map((code) => `\`${code}\`: ${explainCode(code)}`).join('\n\n'),
          headers: headers.toJson({ ...EVERY_FAILURE, ...HEADERS[status] }),
          content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
        },
      ]
    }),
  )
}
