#!/usr/bin/env node
// Makes the passwords that docker-compose.yml mounts into its containers, as files in secrets/. What is there is kept.
import { randomBytes } from 'node:crypto'
import { chmodSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

const HELP = `node tools/secrets.mjs [--into secrets]

Makes the passwords of docker-compose.yml, one file each; what is in files that are there stays.`

const newPassword = () => randomBytes(24).toString('hex')

/** Later ones may be made of earlier ones. */
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

/** Whole or not at all, and never over another: whoever makes the same secrets at the same time ends with the same ones. */
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
  // The folder keeps this machine's other users out: a container reads the files as a user of its own, whatever the mask
  // with which they were made.
  chmodSync(folder, 0o700)
  for (const [name, toValue] of Object.entries(SECRETS)) {
    const file = join(folder, name)
    const isMade = makeOnce(
      file,
      toValue((other) => readSecret(folder, other)),
    )
    readSecret(folder, name)
    chmodSync(file, 0o644)
    console.log(`${file}: ${isMade ? 'made' : 'kept'}`)
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
