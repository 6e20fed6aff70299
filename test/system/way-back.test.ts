import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { toChildEnvironment } from '../../shared/config/config.ts'
import { findFreePort } from '../../shared/free-port.ts'
import { type Child, startChild, untilReady } from '../../tools/children.ts'
import { createTestConfig, createTestDatabase } from '../support/database.ts'
import { readVersions } from '../support/registry-versions.ts'
import { toStoreSettings } from '../support/store-settings.ts'

const ROOT = join(import.meta.dirname, '../..')

/** Older versions: the last one that landed, and the last one without `formerNames` in the registry. */
const REVISIONS = [
  ['the version that landed before', '6370cc8fe98433a6deb38c2c062862263bfeb10f'],
  ['a version without the former names of the registry', '237e77f3~1'],
] as const

const git = (dir: string, ...args: string[]) => execFileSync('git', ['-C', dir, ...args], { encoding: 'utf8' })

/** Whether the clone of the repository has a commit: it may be shallow, or the sources were copied without history. */
const hasCommit = (revision: string) =>
  spawnSync('git', ['-C', ROOT, 'cat-file', '-e', `${revision}^{commit}`]).status === 0

/** A clone of this repository, with the changes of the working tree or at an older revision. */
function createClone(revision?: string): string {
  const dir = mkdtempSync(join(tmpdir(), 'dao-data-clone-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  git(ROOT, 'clone', '--quiet', '--shared', '.', dir)
  if (revision !== undefined) git(dir, 'checkout', '--quiet', '--detach', git(ROOT, 'rev-parse', revision).trim())
  else
    for (const file of git(ROOT, 'ls-files', '-z', '--modified', '--others', '--exclude-standard').split('\0'))
      if (file !== '' && existsSync(join(ROOT, file))) cpSync(join(ROOT, file), join(dir, file))
  symlinkSync(join(ROOT, 'node_modules'), join(dir, 'node_modules'))
  return dir
}

/** The commands of the first block below a heading of docs/upgrades.md, without comments. */
function readSteps(heading: string): string[] {
  const text = readFileSync(join(ROOT, 'docs/upgrades.md'), 'utf8')
  const [, block = ''] = /```sh\n(.*?)```/s.exec(text.slice(text.indexOf(`## ${heading}\n`))) ?? []
  return block
    .split('\n')
    .map((line) => line.replace(/(^|\s+)#.*$/, ''))
    .filter((line) => line !== '')
}

async function createStage() {
  const config = createTestConfig()
  const database = await createTestDatabase(config, { empty: true })
  onTestFinished(database.drop)
  const env = { ...toStoreSettings(config), LOG_LEVEL: 'info' }
  const run = (dir: string, command: string) => {
    const { status, stdout, stderr } = spawnSync('bash', ['-c', command], {
      cwd: dir,
      encoding: 'utf8',
      env: toChildEnvironment(env),
    })
    return { status, output: `${stdout}${stderr}` }
  }
  const start = async (dir: string, kind: 'worker' | 'scheduler'): Promise<Child> => {
    const port = String(await findFreePort())
    const child = startChild(
      kind,
      join(dir, `workers/programs/${kind}.ts`),
      { ...env, LOG_LEVEL: 'silent', WORKER_QUEUES: 'tvl,governance', WORKER_OPS_PORT: port, SCHEDULER_OPS_PORT: port },
      [],
      { keepsOutput: true },
    )
    onTestFinished(() => child.stop())
    await untilReady(child).catch((error) => {
      throw new Error(`${error}: ${child.lastOutput()}`)
    })
    return child
  }
  return { db: database.db, run, start }
}

describe.each(REVISIONS)('upgrade from %s, and the way back', { timeout: 900_000 }, (_, revision) => {
  it.skipIf(!hasCommit(revision))('follows the steps of docs/upgrades.md, with processes that restart', async () => {
    const { db, run, start } = await createStage()
    const [older, newer] = [createClone(revision), createClone()]
    expect(run(older, 'npm run migrate')).toMatchObject({ status: 0 })
    const [first] = await readVersions(db)
    const running = await start(older, 'worker')

    const [schema = '', registry = ''] = readSteps('The order')
    expect(run(newer, schema)).toMatchObject({ status: 0 })
    expect(await readVersions(db)).toEqual([first])
    // The older worker that ran during the migration, and older processes that start after it.
    expect(running.process.exitCode).toBe(null)
    await running.stop()
    for (const kind of ['worker', 'scheduler'] as const) await (await start(older, kind)).stop()
    const replacement = await start(newer, 'worker')
    expect(run(newer, registry)).toMatchObject({ status: 0 })
    expect((await readVersions(db)).length).toBe(2)
    await replacement.stop()

    const changed = git(newer, 'status', '--porcelain')
    for (const step of readSteps('Back to the version before'))
      expect(run(newer, step.replace('<revision>', git(ROOT, 'rev-parse', revision).trim()))).toMatchObject({
        status: 0,
      })
    const taken = git(newer, 'status', '--porcelain')
      .split('\n')
      .filter((line) => !changed.includes(line))
    expect(taken.filter((line) => !line.endsWith('.json'))).toEqual([])
    expect(run(newer, 'npm run migrate -- --check')).toMatchObject({ status: 0 })
    for (const kind of ['worker', 'scheduler'] as const) await (await start(older, kind)).stop()
  })
})
