import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from 'vitest'
import { lockFolder } from '../../tools/lock.ts'
import { readCommandLine } from '../../tools/processes.ts'
import { startRedis } from '../../tools/redis-server.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'dao-data-folder-'))
})
afterEach(() => {
  vi.unstubAllEnvs()
  rmSync(folder, { recursive: true, force: true })
})

/** A machine with only these commands, like small containers. */
function keepOnly(commands: readonly string[]): void {
  const path = join(folder, 'bin')
  mkdirSync(path)
  for (const command of commands) {
    const { stdout } = spawnSync('sh', ['-c', `command -v ${command}`], { encoding: 'utf8' })
    if (stdout !== '') symlinkSync(stdout.trim(), join(path, command))
  }
  vi.stubEnv('PATH', path)
}

/** Other systems use `ps`. */
const onLinux = it.skipIf(process.platform !== 'linux')

onLinux('is locked by a system that runs, on a machine without ps too, and by none that has ended', async () => {
  const dataDir = join(folder, 'data')
  const stack = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)', 'tools/stack.ts'], { stdio: 'ignore' })
  onTestFinished(() => void stack.kill('SIGKILL'))
  await once(stack, 'spawn')
  mkdirSync(dataDir)
  writeFileSync(join(dataDir, 'stack.pid'), String(stack.pid))
  keepOnly([])
  expect(() => lockFolder(dataDir)).toThrow(`${dataDir} is in use by process ${stack.pid}`)
  expect(readFileSync(join(dataDir, 'stack.pid'), 'utf8')).toBe(String(stack.pid))
  stack.kill('SIGKILL')
  await once(stack, 'exit')
  // Of two processes that find the same stale lock, one takes it over.
  writeFileSync(join(dataDir, 'stack.pid.new'), '')
  expect(() => lockFolder(dataDir)).toThrow(/stack\.pid\.new exists: another start is taking over/)
  rmSync(join(dataDir, 'stack.pid.new'))
  lockFolder(dataDir)
  expect(readFileSync(join(dataDir, 'stack.pid'), 'utf8')).toBe(String(process.pid))
})

onLinux('has one Redis, on a machine without ps too: one that was left is ended before the next begins', async () => {
  keepOnly(['redis-server', 'valkey-server'])
  const dir = join(folder, 'redis')
  const remaining = await startRedis(dir)
  onTestFinished(() => remaining.stop())
  const next = await startRedis(dir)
  onTestFinished(() => next.stop())
  expect(readCommandLine(Number(remaining.child.pid))).toBe('')
  expect(readCommandLine(Number(next.child.pid))).toMatch(/redis-server|valkey-server/)
})
