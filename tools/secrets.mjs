#!/usr/bin/env node
// Makes the passwords that docker-compose.yml mounts into its containers, as files in secrets/. What is there is kept.
import { randomBytes } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

const HELP = `node tools/secrets.mjs [--into secrets]

Makes the passwords of docker-compose.yml, one file each; files that are there stay as they are.`

const { values } = parseArgs({
  options: { into: { type: 'string', default: join(import.meta.dirname, '../secrets') }, help: { type: 'boolean' } },
})

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

function make(folder) {
  mkdirSync(folder, { recursive: true })
  // The folder keeps this machine's other users out: a container reads the files as a user of its own.
  chmodSync(folder, 0o700)
  const read = (name) => readFileSync(join(folder, name), 'utf8').trim()
  for (const [name, toValue] of Object.entries(SECRETS)) {
    const file = join(folder, name)
    const isKept = existsSync(file)
    if (!isKept) writeFileSync(file, toValue(read), { mode: 0o644 })
    console.log(`${file}: ${isKept ? 'kept' : 'made'}`)
  }
}

if (values.help) console.log(HELP)
else make(values.into)
