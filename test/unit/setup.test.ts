import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

/** A clone with everything except Redis, on a machine without Redis. */
let clone: string
beforeEach(() => {
  clone = mkdtempSync(join(tmpdir(), 'dao-data-clone-'))
  for (const folder of ['tools', 'bin', 'node_modules']) mkdirSync(join(clone, folder), { recursive: true })
  cpSync(join(import.meta.dirname, '../../tools/setup.mjs'), join(clone, 'tools/setup.mjs'))
  writeFileSync(join(clone, 'tools/build-page.mjs'), '')
  const sources = ['package-lock.json']
  for (const file of [...sources, 'node_modules/.package-lock.json']) writeFileSync(join(clone, file), '')
  const { stdout } = spawnSync('sh', ['-c', 'command -v sh'], { encoding: 'utf8' })
  symlinkSync(stdout.trim(), join(clone, 'bin/sh'))
})
afterEach(() => rmSync(clone, { recursive: true }))

function setUp(settings: string, env: Record<string, string> = {}, args: readonly string[] = []) {
  writeFileSync(join(clone, '.env'), settings)
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(clone, 'tools/setup.mjs'), ...args], {
    env: { PATH: join(clone, 'bin'), ...env },
    encoding: 'utf8',
  })
  return { status, stdout, stderr }
}

const URL = 'redis://redis.example'

describe('tools/setup.mjs', () => {
  it.each([
    [`REDIS_URL=${URL}`, {}],
    [`export REDIS_URL = "${URL}"`, {}],
    ['REDIS_URL_FILE=/run/secrets/redis_url', {}],
    ['', { REDIS_URL: URL }],
    ['', { REDIS_URL_FILE: '/run/secrets/redis_url' }],
  ])('needs no local Redis if the settings name one: %j %j', (settings, env) => {
    expect(setUp(settings, env)).toMatchObject({ status: 0, stderr: '' })
  })

  it.each([
    ['#REDIS_URL=redis://127.0.0.1:6379', {}],
    ['REDIS_URL=""', {}],
    ['REDIS_URL= # none', {}],
    [`REDIS_URL=${URL}`, { REDIS_URL: '' }],
  ])('names the package to install if there is no Redis: %j %j', (settings, env) => {
    expect(setUp(settings, env)).toMatchObject({ status: 1, stderr: expect.stringContaining('install Redis 6.2') })
  })

  it('needs no Redis to build the client, and installs packages first', () => {
    const { scripts } = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8'))
    expect(scripts['prebuild:client']).toBe('node tools/setup.mjs --packages')
    rmSync(join(clone, 'node_modules/.package-lock.json'))
    writeFileSync(join(clone, 'bin/npm'), '#!/bin/sh\necho "npm $*"\n', { mode: 0o755 })
    expect(setUp('', {}, ['--packages'])).toMatchObject({ status: 0, stdout: expect.stringContaining('npm ci') })
  })
})
