#!/usr/bin/env node
// Prepares a fresh clone: packages, the page, and a Redis binary unless REDIS_URL names a server. Runs before the
// commands that newcomers start with (`npm start`, `test`, `live`, `providers`), uses only Node's own modules, and does
// nothing if all is present. With --packages it installs only the packages, which is enough to build the client.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
// The whole module, because older versions of Node lack parseEnv; they get a message that Node is too old.
import util from 'node:util'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')

function fail(message) {
  console.error(message)
  process.exit(1)
}

function run(command, args) {
  console.log(`> ${command} ${args.join(' ')}`)
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: 'inherit' })
  if (status !== 0) fail(`${command} failed${error ? `: ${error.message}` : ` with exit code ${status}`}`)
}

const has = (command) => spawnSync('sh', ['-c', `command -v ${command}`]).status === 0

function requireNode() {
  const [major, minor] = process.versions.node.split('.').map(Number)
  if (major < 20 || (major === 20 && minor < 19))
    fail(`Node ${process.versions.node} is too old: 20.19 or newer is needed`)
}

/** npm writes its own lock file into node_modules when an install is complete; an older one is an older install. */
function installPackages() {
  const installed = join(root, 'node_modules', '.package-lock.json')
  const locked = join(root, 'package-lock.json')
  if (existsSync(installed) && statSync(installed).mtimeMs >= statSync(locked).mtimeMs) return
  run('npm', ['ci', '--no-audit', '--no-fund'])
}

/** Like the configuration: the environment overrides `.env`, even with an empty value. */
function redisIsGiven() {
  const file = join(root, '.env')
  const env = { ...(existsSync(file) ? util.parseEnv(readFileSync(file, 'utf8')) : {}), ...process.env }
  return Boolean(env.REDIS_URL || env.REDIS_URL_FILE)
}

function installRedis() {
  if (redisIsGiven() || has('redis-server') || has('valkey-server')) return
  const byHand =
    'install Redis 6.2 or newer (Debian: sudo apt-get install redis-server; macOS: brew install redis) or set REDIS_URL'
  if (!has('apt-get') || process.getuid?.() !== 0) fail(`No redis-server or valkey-server was found: ${byHand}.`)
  run('apt-get', ['update', '-q'])
  // Excludes recommended packages and the package's own service, because the stack runs a private server.
  run('env', [
    'RUNLEVEL=1',
    'DEBIAN_FRONTEND=noninteractive',
    'apt-get',
    'install',
    '-y',
    '-q',
    '--no-install-recommends',
    'redis-server',
  ])
}

requireNode()
installPackages()
if (!process.argv.includes('--packages')) {
  installRedis()
  const { status } = spawnSync(process.execPath, [join('tools', 'build-page.mjs')], { cwd: root, stdio: 'inherit' })
  if (status !== 0) process.exit(1)
}
