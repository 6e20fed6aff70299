import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { toProgram } from '../../tools/children.ts'

const root = join(import.meta.dirname, '../..')

const run = (program: string, ...words: string[]) =>
  spawnSync(process.execPath, [...toProgram(join(root, program)), ...words], {
    cwd: root,
    env: { ...process.env, npm_lifecycle_event: 'this' },
    encoding: 'utf8',
  })

describe('operator commands', () => {
  it.each([
    ['workers/commands/status.ts', ['--bogus'], "Unknown option '--bogus'\nSee: npm run this -- --help"],
    [
      'workers/commands/rebuild-table.ts',
      ['token_price_rollups', 'dex_data', '--dry-run'],
      'one table per run: token_price_rollups, dex_data are several',
    ],
  ])('%s rejects %j without a stack trace', (program, words, reason) => {
    const { status, stderr } = run(program, ...words)
    expect(status).toBe(1)
    expect(stderr.trim()).toBe(reason)
  })
})

describe('API process with a closed output', () => {
  it('keeps answering and stops with exit code 0', async () => {
    const nowhere = { CLICKHOUSE_URL: 'http://127.0.0.1:1', REDIS_URL: 'redis://127.0.0.1:1' }
    const env = { ...process.env, ...nowhere, API_PORT: '0', API_OPS_PORT: '0', API_DRAIN_SECONDS: '0' }
    const api = spawn(process.execPath, toProgram(join(root, 'api/main.ts')), { env })
    const ended = once(api, 'exit')
    const [ready] = await once(api.stdout, 'data')
    api.stdout.destroy()
    api.stderr.destroy()
    const { url } = z.object({ url: z.string() }).parse(JSON.parse(String(ready)))
    // Neither store is available, and the log has a line for each request.
    const answers = await Promise.all(Array.from({ length: 50 }, () => fetch(`${url}/data/tokens`)))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([503]))
    api.kill()
    expect(await ended).toEqual([0, null])
  })
})
