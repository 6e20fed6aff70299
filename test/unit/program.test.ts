import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { toProgram } from '../../tools/children.ts'

const root = join(import.meta.dirname, '../..')

const run = (program: string, ...words: string[]) =>
  spawnSync(process.execPath, [...toProgram(join(root, program)), ...words], { cwd: root, encoding: 'utf8' })

describe("an operator's command", () => {
  it.each([
    ['workers/commands/status.ts', ['--bogus'], "Unknown option '--bogus'"],
    ['workers/commands/rebuild-table.ts', ['token_price_rollups', 'dex_data', '--dry-run'], 'one table per run'],
  ])('%s refuses %j in a line', (program, words, reason) => {
    const { status, stderr } = run(program, ...words)
    expect(status).toBe(1)
    expect(stderr).toContain(reason)
    expect(stderr.trim().split('\n')).toHaveLength(1)
  })
})
