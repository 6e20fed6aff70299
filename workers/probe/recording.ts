import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import type { Config } from '../../shared/config/config.ts'
import { createRedactor, findSecrets } from '../../shared/config/secrets.ts'
import { DataError } from '../../shared/errors.ts'
import type { Exchange } from '../http/request.ts'

/** When the answers of a folder were given, in Unix milliseconds: what was asked for depends on it. */
export const recordingFacts = z.object({ now: z.int() })

/** An answer as it is kept: the way and the query of what was asked, without host and keys, and what came. */
export const recordedAnswer = z.object({
  provider: z.string(),
  method: z.enum(['GET', 'POST']),
  path: z.string(),
  sent: z.unknown().optional(),
  status: z.int(),
  contentType: z.string().nullable(),
  body: z.string(),
})
export type RecordedAnswer = z.infer<typeof recordedAnswer>

export const FACTS_FILE = 'recording.json'

/** The parameters of a query that are keys whatever they look like. */
const KEY_PARAMETER = /key|token|secret/i

/**
 * Keeps answers in a folder, a file each, without the secrets of the settings.
 * @throws DataError `config` where the folder cannot be made, or holds anything.
 */
export function createRecorder(folder: string, config: Config, now: number): (exchange: Exchange) => void {
  const redact = createRedactor(findSecrets(config))
  let isEmpty: boolean
  try {
    // Not with the folders above it: where none can be made, as in /proc, that tries for ever.
    if (!existsSync(folder)) mkdirSync(folder)
    isEmpty = readdirSync(folder).length === 0
    if (isEmpty) writeFileSync(join(folder, FACTS_FILE), `${JSON.stringify({ now })}\n`)
  } catch (cause) {
    throw new DataError('config', `--record: ${folder} cannot be written`, { cause })
  }
  // Answers of two times would be told as one.
  if (!isEmpty) throw new DataError('config', `--record: ${folder} is not empty`)
  const counts = new Map<string, number>()
  return ({ provider, url, sent, body, ...rest }) => {
    const count = (counts.get(provider) ?? 0) + 1
    counts.set(provider, count)
    const path = redact(toPath(url))
    const clean = sent === undefined ? undefined : JSON.parse(redact(JSON.stringify(sent)))
    const answer: RecordedAnswer = { provider, path, sent: clean, body: redact(body), ...rest }
    writeFileSync(join(folder, `${provider}-${count}.json`), `${JSON.stringify(answer, null, 2)}\n`)
  }
}

/** The way and the query of an address, without the parameters that are keys. */
export function toPath(address: string): string {
  const url = new URL(address)
  for (const name of [...url.searchParams.keys()]) if (KEY_PARAMETER.test(name)) url.searchParams.delete(name)
  return `${url.pathname}${url.search}`
}
