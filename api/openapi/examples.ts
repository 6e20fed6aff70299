import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'

const answers = z.record(z.string(), z.object({ url: z.string(), answer: z.unknown() }))

/** Recorded answers by operation, each with its request. A test generates and checks them. */
export const EXAMPLES_FILE = join(import.meta.dirname, 'examples.json')

export const exampleAnswers: z.infer<typeof answers> = existsSync(EXAMPLES_FILE)
  ? answers.parse(JSON.parse(readFileSync(EXAMPLES_FILE, 'utf8')))
  : {}
