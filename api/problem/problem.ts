import { z } from 'zod'
import { isTransient, toClickHouseCode } from '../../shared/store/store.ts'
import { PROBLEM_CODE_NAMES, PROBLEM_CODES, type ProblemCode } from './codes.ts'

const candidate = z
  .strictObject({
    id: z.string().describe('Id of the token or the DAO.'),
    name: z.string().describe('Its name.'),
  })
  .meta({ id: 'Candidate', description: 'One that a name could mean.' })

/** The body of every failure: RFC 9457 problem details with the members of docs/contract.md, section 5. */
export const problemBody = z
  .strictObject({
    type: z.string().describe('URL of the explanation of `code`.'),
    title: z.string().describe('Short meaning of `code`.'),
    status: z.int().describe('The HTTP status.'),
    detail: z.string().describe('The reason, as readable text.'),
    instance: z.string().describe('The requested path.'),
    code: z.enum(PROBLEM_CODE_NAMES).describe('Error code for programs.'),
    requestId: z.string().describe('Id of the request, as in `X-Request-Id`.'),
    param: z.string().optional().describe('The invalid parameter, if the failure is about one.'),
    allowed: z.array(z.string()).optional().describe('Accepted values, if known.'),
    candidates: z.array(candidate).optional().describe('The entities with the requested name, if there are several.'),
  })
  .meta({ id: 'Problem', description: 'Why a request failed (RFC 9457).' })

type ProblemBody = z.infer<typeof problemBody>

interface Particulars {
  param?: string
  allowed?: readonly string[]
  candidates?: readonly z.infer<typeof candidate>[]
  headers?: Readonly<Record<string, string>>
  cause?: unknown
}

/** A failure with a response for the client. `detail` is public: no SQL, no engine text, no stack. */
export class Problem extends Error {
  readonly code: ProblemCode
  readonly particulars: Particulars

  constructor(code: ProblemCode, detail: string, particulars: Particulars = {}) {
    super(detail, { cause: particulars.cause })
    this.name = 'Problem'
    this.code = code
    this.particulars = particulars
  }

  get status(): number {
    return PROBLEM_CODES[this.code].status
  }
}

/** ClickHouse's codes for an unknown table and an unknown database, before the schema is set up. */
const NOT_SET_UP: ReadonlySet<string | undefined> = new Set(['60', '81'])

const RETRY_AFTER_SECONDS = 5

/** 503 with `Retry-After`, for an unavailable or overloaded dependency. */
export function toUnavailable(detail: string, cause?: unknown): Problem {
  return new Problem('unavailable', detail, { headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) }, cause })
}

/** Converts any thrown value to a problem; only the text of a Problem is public. */
export function toProblem(error: unknown): Problem {
  if (error instanceof Problem) return error
  if (isTransient(error) || NOT_SET_UP.has(toClickHouseCode(error)))
    return toUnavailable('The database cannot answer at the moment.', error)
  return new Problem('internal', 'The service failed to answer this request.', { cause: error })
}

/** The body of a problem; `publicUrl` is the base URL of the explanations. */
export function toProblemBody(
  problem: Problem,
  request: { publicUrl: string; instance: string; requestId: string },
): ProblemBody {
  const { param, allowed, candidates } = problem.particulars
  return {
    type: `${request.publicUrl}/docs/errors#${problem.code}`,
    title: PROBLEM_CODES[problem.code].title,
    status: problem.status,
    detail: problem.message,
    instance: request.instance,
    code: problem.code,
    requestId: request.requestId,
    ...(param === undefined ? {} : { param }),
    ...(allowed === undefined ? {} : { allowed: [...allowed] }),
    ...(candidates === undefined ? {} : { candidates: [...candidates] }),
  }
}
