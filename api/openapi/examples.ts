import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'

const answers = z.record(z.string(), z.object({ url: z.string(), answer: z.unknown() }))

/** Real answers by operation, each with the request that gave it. A test makes and checks them. */
export const EXAMPLES_FILE = join(import.meta.dirname, 'examples.json')

export const exampleAnswers: z.infer<typeof answers> = existsSync(EXAMPLES_FILE)
  ? answers.parse(JSON.parse(readFileSync(EXAMPLES_FILE, 'utf8')))
  : {}
