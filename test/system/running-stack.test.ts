import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync } from 'node:fs'
import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { findFreePort } from '../../shared/free-port.ts'
import { toProgram } from '../../tools/children.ts'

const ROOT = join(import.meta.dirname, '../..')
/** The environment of an operator without any settings. */
const UNSET = { CLICKHOUSE_URL: '', REDIS_URL: '', DATA_DIR: '', CLICKHOUSE_DATABASE: '', QUEUE_PREFIX: '' }

let folder: string
let system: ReturnType<typeof spawn>
let said = ''

beforeAll(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'dao-data-stack-')))
  mkdirSync(join(folder, '.data'))
  const ports = { API_OPS_PORT: '0', SCHEDULER_OPS_PORT: '0', WORKER_OPS_PORT: '0' }
  const own = { DATA_DIR: join(folder, '.data'), CLICKHOUSE_DATABASE: 'of_the_stack', QUEUE_PREFIX: 'of-the-stack' }
  const parts = { API_PORT: String(await findFreePort()), WORKER_QUEUES: 'ratings', LOG_LEVEL: 'silent' }
  const env = { ...process.env, ...UNSET, ...ports, ...own, ...parts }
  system = spawn(process.execPath, ['--import', 'tsx', 'tools/stack.ts', 'live'], { cwd: ROOT, env })
  for (const output of [system.stdout, system.stderr])
    output?.setEncoding('utf8').on('data', (text) => {
      said += text
    })
  await vi.waitFor(() => expect(said).toContain('dao-data is up'), { timeout: 120_000 })
}, 180_000)
afterAll(async () => {
  if (system.exitCode === null) {
    system.kill('SIGTERM')
    await once(system, 'exit')
  }
  await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 })
})

/** Runs a command in the folder of the running system, without any setting. */
async function run(file: string, ...args: string[]) {
  const child = spawn(process.execPath, [...toProgram(join(ROOT, file)), ...args], {
    cwd: folder,
    env: { ...process.env, ...UNSET },
  })
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (text) => {
      output[name] += text
    })
  const [status] = await once(child, 'exit')
  return { status, ...output }
}

it('operator commands find the stores of a running system, and report if none runs', async () => {
  const status = await run('workers/commands/status.ts', '--json')
  // Nothing is stored yet, so the command exits with 1.
  expect(status).toMatchObject({ status: 1, stderr: '' })
  expect(JSON.parse(status.stdout)).toContainEqual(expect.objectContaining({ dataset: 'prices', state: 'empty' }))
  expect(await run('workers/commands/queued-jobs.ts', 'list', '--state', 'completed')).toMatchObject({ status: 0 })
  expect(await run('workers/commands/find-gaps.ts', 'prices')).toMatchObject({ status: 2 })
  expect(await run('workers/commands/rebuild-table.ts', 'token_price_rollups', '--dry-run')).toMatchObject({
    status: 0,
  })
  const tables = await run('clickhouse/backup.ts', join(folder, 'backup'), '--dry-run')
  expect(tables).toMatchObject({ status: 0, stdout: expect.stringContaining('token_prices: 0 rows') })
  expect((await run('clickhouse/backup.ts', join(folder, 'backup'))).status).toBe(0)
  const manifest = readFileSync(join(folder, 'backup/manifest.json'), 'utf8')
  expect(JSON.parse(manifest)).toMatchObject({ database: 'of_the_stack' })

  system.kill('SIGTERM')
  await once(system, 'exit')
  for (const file of ['status', 'queued-jobs']) {
    const unavailable = await run(`workers/commands/${file}.ts`, ...(file === 'status' ? [] : ['list']))
    expect(unavailable.status).toBe(1)
    expect(unavailable.stderr.trim().split('\n')).toEqual([
      expect.stringMatching(/: no npm start or npm run live runs over \.data or \.data\/demo, and CLICKHOUSE_URL and /),
    ])
  }
})
