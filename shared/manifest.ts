import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'

/** Version and license of this service. */
export const { version, license } = z
  .object({ version: z.string(), license: z.string() })
  .parse(JSON.parse(readFileSync(join(import.meta.dirname, '../package.json'), 'utf8')))
