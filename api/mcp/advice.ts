import type { Call } from './define-tool.ts'
import { findNear } from './requests.ts'
import type { Refused } from './source.ts'

const MOST_ALLOWED = 30

/** Describes the error, the entity that it concerns, and the next step. */
export async function toAdvice(
  { source, signal }: Pick<Call<unknown>, 'source' | 'signal'>,
  { problem: { code, detail, param, allowed, candidates }, retryAfter }: Refused,
  of: string | undefined,
): Promise<string> {
  const said = [`${code}: ${detail}`]
  if (candidates !== undefined)
    said.push(`It could be ${candidates.map(({ id, name }) => `${name} (${id})`).join(', ')}: use an id.`)
  if (allowed !== undefined) said.push(`Allowed: ${allowed.slice(0, MOST_ALLOWED).join(', ')}.`)
  // The entity was found if only its time has no value.
  if (code === 'not_found' && of !== undefined && param !== 'at') said.push(await findNear(source, of, signal))
  if (retryAfter !== undefined) said.push(`Retry after ${retryAfter} seconds.`)
  return said.join(' ')
}
