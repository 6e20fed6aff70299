/**
 * A failure in ClickHouse's own terms: `code` and `type` are those of ClickHouse's error list, so that
 * `@clickhouse/client` turns the response into a `ClickHouseError` with the same two fields.
 */
export class ClickHouseException extends Error {
  readonly code: number
  readonly type: string
  readonly status: number

  constructor(code: number, type: string, message: string, status = toHttpStatus(code)) {
    super(message)
    this.name = 'ClickHouseException'
    this.code = code
    this.type = type
    this.status = status
  }
}

/** Groups follow the ClickHouse server: what the client wrote wrongly is 400, what does not exist is 404. */
const STATUS_GROUPS: readonly (readonly [status: number, codes: readonly number[]])[] = [
  [400, [6, 15, 25, 26, 27, 36, 38, 41, 43, 44, 53, 62, 72, 117, 168, 321, 376, 427, 456, 457, 675, 676]],
  [401, [194]],
  [403, [192, 193, 516]],
  [404, [30, 46, 47, 50, 56, 60, 63, 73, 78, 81, 115, 139, 336]],
  [408, [159]],
  [413, [307, 473]],
  [501, [48]],
  [503, [74, 202, 209, 210]],
]

const statusByCode = new Map(STATUS_GROUPS.flatMap(([status, codes]) => codes.map((code) => [code, status] as const)))

function toHttpStatus(code: number): number {
  return statusByCode.get(code) ?? 500
}

// The engine reports its code and type only inside its message; these are the two fixed places.
const engineCode = /Code: (\d+)\. DB::Exception: /
const engineType = /\(([A-Z][A-Z0-9_]{2,})\)/g
const nestedPrefix = /^(?:Code: \d+\. DB::Exception: )+/

/** Turns whatever an engine call threw into a `ClickHouseException`; an error without an engine code is 1002. */
export function toClickHouseException(error: unknown): ClickHouseException {
  if (error instanceof ClickHouseException) return error
  const text = error instanceof Error ? error.message : String(error)
  const match = engineCode.exec(text)
  if (match === null) return new ClickHouseException(1002, 'UNKNOWN_EXCEPTION', text)
  const type = [...text.matchAll(engineType)].at(-1)?.[1] ?? 'UNKNOWN_EXCEPTION'
  const message = text
    .slice(match.index)
    .replace(nestedPrefix, '')
    .replace(new RegExp(`\\s*\\(${type}\\)[\\s\\S]*$`), '')
  return new ClickHouseException(Number(match[1]), type, message)
}

/**
 * The line a ClickHouse server writes as the response body. The client takes the first upper-case word in parentheses
 * for the type, so such words of the message, as in "failed at position 1 (SELEC)", are set in quotes.
 */
export function toExceptionText(error: ClickHouseException): string {
  const message = error.message.replace(/\(([A-Z0-9_]+)\)/g, "('$1')")
  return `Code: ${error.code}. DB::Exception: ${message} (${error.type})\n`
}

/** Code 164: the reader, or a GET request, asked for something that is not a read. */
export function readonlyViolation(message: string): ClickHouseException {
  return new ClickHouseException(164, 'READONLY', message)
}
