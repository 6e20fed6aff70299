import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { DataError, toReason } from './errors.ts'

/** Folder of the logos that `npm run logos` stores and the API serves. */
export const logosFolder = (dataDir: string) => join(dataDir, 'logos')

const ATTRIBUTION = 'attribution.json'

export const attributionFile = (folder: string) => join(folder, ATTRIBUTION)

const logo = z.strictObject({
  /** The token's name and symbol. */
  name: z.string(),
  /** The image at the provider. */
  url: z.url(),
  file: z.string().regex(/^[0-9a-f]{24}\.(?:png|jpg|webp)$/),
  /** Pixels. */
  width: z.int(),
  height: z.int(),
  bytes: z.int(),
})

const attribution = z.strictObject({
  source: z.string(),
  homepage: z.url(),
  notice: z.string(),
  /** By the token's id. */
  logos: z.record(z.string().regex(/^[0-9a-f]{24}$/), logo),
})

export type Logo = z.infer<typeof logo>
export type Attribution = z.infer<typeof attribution>

/**
 * Reads the sources of the stored logos; undefined if none were fetched.
 * @throws DataError `config` if the file is malformed.
 */
export function readAttribution(folder: string): Attribution | undefined {
  const file = attributionFile(folder)
  if (!existsSync(file)) return undefined
  try {
    return attribution.parse(JSON.parse(readFileSync(file, 'utf8')))
  } catch (cause) {
    const reason = cause instanceof z.ZodError ? z.prettifyError(cause) : toReason(cause)
    throw new DataError('config', `${file} is malformed: remove it and run \`npm run logos\`: ${reason}`, { cause })
  }
}
