import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The code that decodes answers, relative to this file. */
const FOLDERS = ['../providers', '../jobs'] as const

let version: string | undefined

/** Returns a hash of the code that decodes answers: equal versions decode the same answers to the same rows. */
export function readDecoderVersion(): string {
  version ??= hashFolders()
  return version
}

function hashFolders(): string {
  const sum = createHash('sha256')
  for (const name of FOLDERS) {
    const folder = join(import.meta.dirname, name)
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => /\.[jt]s$/.test(file))
    for (const file of files.sort()) sum.update(`${file}\0`).update(readFileSync(join(folder, file)))
  }
  return sum.digest('hex').slice(0, 12)
}
