#!/usr/bin/env node
// Creates the passwords that docker-compose.yml mounts into its containers, as files in secrets/. Existing files are
// unchanged.
import { randomBytes } from 'node:crypto'
import { chmodSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

const HELP = `node tools/secrets.mjs [--into secrets]

Creates the passwords of docker-compose.yml, one file each. Existing files are unchanged.`

const newPassword = () => randomBytes(24).toString('hex')

/** Later secrets may derive from earlier ones. */
const SECRETS = {
  clickhouse_password: newPassword,
  clickhouse_read_password: newPassword,
  clickhouse_cluster_secret: newPassword,
  redis_password: newPassword,
  redis_url: (read) => `redis://:${encodeURIComponent(read('redis_password'))}@redis:6379`,
  grafana_password: newPassword,
}

function readSecret(folder, name) {
  const value = readFileSync(join(folder, name), 'utf8').trim()
  if (value === '') throw new Error(`${join(folder, name)} is empty: write a password into it, or remove it`)
  return value
}

/** Creates a file atomically and never overwrites one, so that concurrent runs end with the same secrets. */
function makeOnce(file, value) {
  const draft = `${file}.${process.pid}`
  writeFileSync(draft, value)
  try {
    linkSync(draft, file)
    return true
  } catch (error) {
    if (error.code === 'EEXIST') return false
    throw error
  } finally {
    rmSync(draft)
  }
}

function make(folder) {
  mkdirSync(folder, { recursive: true })
  // The folder's mode excludes other users of this machine. The files must be readable for the containers' users,
  // regardless of the umask.
  chmodSync(folder, 0o700)
  for (const [name, toValue] of Object.entries(SECRETS)) {
    const file = join(folder, name)
    const isMade = makeOnce(
      file,
      toValue((other) => readSecret(folder, other)),
    )
    readSecret(folder, name)
    chmodSync(file, 0o644)
    console.log(`${file}: ${isMade ? 'created' : 'unchanged'}`)
  }
}

try {
  const into = { type: 'string', default: join(import.meta.dirname, '../secrets') }
  const { values } = parseArgs({ options: { into, help: { type: 'boolean' } } })
  if (values.help) console.log(HELP)
  else make(values.into)
} catch (error) {
  console.error(error.message)
  process.exitCode = 1
}
