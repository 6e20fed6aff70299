import { createHash } from 'node:crypto'
import { Problem } from '../problem/problem.ts'

const SEAL_BYTES = 9

/** A hash of the query and the position. A cursor with another hash is damaged, or from another query. */
const toSeal = (query: string, key: string) =>
  createHash('sha256').update(`${query}\u001f${key}`).digest().subarray(0, SEAL_BYTES)

/**
 * Encodes a position in an ordered answer for URLs: the sort values of the last record served. It needs no server
 * state, does not expire, and skips or repeats no record whose position is unchanged.
 */
export function writeCursor(query: string, key: string): string {
  return Buffer.concat([toSeal(query, key), Buffer.from(key)]).toString('base64url')
}

/** The problem for a cursor that is invalid in this query. */
export function refuseCursor(): Problem {
  const detail = 'cursor is not one of this query: take it from the Link of an answer to it.'
  return new Problem('invalid_parameter', detail, { param: 'cursor' })
}

/**
 * The sort values of a cursor as they were written. The seal detects mistakes, not forgery: any client can compute it.
 * @throws Problem `invalid_parameter` for a cursor of another query, or an invalid one.
 */
export function readCursor(query: string, cursor: string): string {
  const bytes = Buffer.from(cursor, 'base64url')
  const key = bytes.toString('utf8', SEAL_BYTES)
  if (bytes.length > SEAL_BYTES && writeCursor(query, key) === cursor) return key
  throw refuseCursor()
}
