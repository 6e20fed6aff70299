#!/usr/bin/env node
// Builds the page into web/dist unless the build there has the same inputs. Uses only Node's own modules and Vite, so that
// `tools/setup.mjs` can run it in a fresh clone.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const dist = join(root, 'web', 'dist')
/** File with the digest of the build's inputs. The API serves only index.html and the assets folder. */
const RECORD = '.inputs'

/** Generated types and earlier builds do not change the page. */
const isInput = (name) =>
  /\.(?:ts|tsx|css|svg|html|json)$/.test(name) && !/^(?:dist|schema\.ts$|operations\.ts$)/.test(name)

function listInputs() {
  const folders = ['web', join('clients', 'typescript', 'src'), 'shared']
  const files = folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true })
      .filter(isInput)
      .map((name) => join(folder, name)),
  )
  return [...files.sort(), 'package-lock.json']
}

function hashInputs() {
  const hash = createHash('sha256')
  for (const file of listInputs())
    hash
      .update(`${file}\0`)
      .update(readFileSync(join(root, file)))
      .update('\0')
  return hash.digest('hex')
}

/** Renames a folder. Codes in `expected` mean that a concurrent build has renamed or created one of the two. */
function renameUnless(expected, from, to) {
  try {
    renameSync(from, to)
  } catch (error) {
    if (!expected.includes(error.code)) throw error
  }
}

const inputs = hashInputs()
const record = join(dist, RECORD)
const isCurrent = existsSync(join(dist, 'index.html')) && existsSync(record) && readFileSync(record, 'utf8') === inputs
if (!isCurrent) {
  // Built beside web/dist and renamed when complete: a running API may read web/dist at any time.
  const next = `${dist}.${process.pid}`
  const vite = join('node_modules', 'vite', 'bin', 'vite.js')
  console.log('> vite build web')
  const args = [vite, 'build', 'web', '--outDir', next, '--emptyOutDir', '--logLevel', 'warn']
  const { status, error } = spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' })
  if (status !== 0) {
    rmSync(next, { recursive: true, force: true })
    console.error(`The page was not built: ${error?.message ?? `vite ended with exit code ${status}`}`)
    process.exit(1)
  }
  writeFileSync(join(next, RECORD), inputs)
  // A concurrent build may replace web/dist too: only renames touch it, so it is always one complete build.
  const previous = `${next}.previous`
  renameUnless(['ENOENT'], dist, previous)
  renameUnless(['ENOTEMPTY', 'EEXIST'], next, dist)
  for (const folder of [previous, next]) rmSync(folder, { recursive: true, force: true })
}
