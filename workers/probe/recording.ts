import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import type { Config } from '../../shared/config/config.ts'
import { createRedactor, findSecrets } from '../../shared/config/secrets.ts'
import { DataError } from '../../shared/errors.ts'
import type { Exchange } from '../http/client.ts'

/** Time of the recorded responses in Unix milliseconds. The requested ranges depend on it. */
export const recordingFacts = z.object({ now: z.int() })

/** A recorded response with the path and query of its request, without host and keys. */
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

/** Names of query parameters that contain keys. */
const KEY_PARAMETER = /key|token|secret/i

/**
 * Writes each response to a file in the folder, without the secrets of the settings.
 * @throws DataError `config` if the folder cannot be created or is not empty.
 */
export function createRecorder(folder: string, config: Config, now: number): (exchange: Exchange) => void {
  const redact = createRedactor(findSecrets(config))
  let isEmpty: boolean
  try {
    // Not recursive: where no folder can be created, such as in /proc, a recursive mkdir never returns.
    if (!existsSync(folder)) mkdirSync(folder)
    isEmpty = readdirSync(folder).length === 0
    if (isEmpty) writeFileSync(join(folder, FACTS_FILE), `${JSON.stringify({ now })}\n`)
  } catch (cause) {
    throw new DataError('config', `--record: ${folder} cannot be written`, { cause })
  }
  // Responses of two recordings would be mixed.
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

/** Returns path and query of a URL, without the parameters that hold keys. */
export function toPath(address: string): string {
  const url = new URL(address)
  for (const name of [...url.searchParams.keys()]) if (KEY_PARAMETER.test(name)) url.searchParams.delete(name)
  return `${url.pathname}${url.search}`
}
