import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished, vi } from 'vitest'
import { findFreePort } from '../../shared/free-port.ts'
import { jobs } from '../../workers/jobs/list.ts'
import { type Catalog, verify } from '../../workers/publish/catalog.ts'
import { openFolder } from '../../workers/publish/target.ts'

/** The demo with one dataset, over its own stores. */
async function startDemo(folder: string) {
  const port = await findFreePort()
  const off = jobs.map(({ name }) => name).filter((name) => name !== 'fees')
  const env = {
    ...process.env,
    ...{ CLICKHOUSE_URL: '', REDIS_URL: '', CLICKHOUSE_DATABASE: '', QUEUE_PREFIX: '', PUBLISH_TO: '' },
    ...{ API_OPS_PORT: '0', SCHEDULER_OPS_PORT: '0', WORKER_OPS_PORT: '0', API_PORT: String(port) },
    ...{ DATA_DIR: folder, DATASETS_OFF: off.join(','), LOG_LEVEL: 'silent' },
  }
  const cwd = join(import.meta.dirname, '../..')
  const system = spawn(process.execPath, ['--import', 'tsx', 'tools/stack.ts', 'demo'], { cwd, env })
  const said = { text: '' }
  for (const output of [system.stdout, system.stderr])
    output.setEncoding('utf8').on('data', (text) => (said.text += text))
  const ended = once(system, 'exit')
  onTestFinished(async () => {
    system.kill('SIGTERM')
    await ended
  })
  return { url: `http://127.0.0.1:${port}`, said, system, ended }
}

it('demo publishes into its data folder when its history is complete, and its API serves the files', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'dao-data-demo-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 }))
  const { url, said, system, ended } = await startDemo(folder)
  await vi.waitFor(() => expect(said.text).toMatch(/^history is .*\n(.*\n)*published as \d+ files/m), {
    timeout: 240_000,
  })
  const catalog = (await (await fetch(`${url}/published/catalog.json`)).json()) as Catalog
  const rowsOf = new Map(
    catalog.datasets.map(({ name, partitions }) => [name, partitions.reduce((sum, { rows }) => sum + rows, 0)]),
  )
  expect(rowsOf.get('daos')).toBeGreaterThan(50)
  expect(rowsOf.get('fees')).toBeGreaterThan(1_000)
  expect(rowsOf.get('prices')).toBe(0)
  system.kill('SIGTERM')
  expect(await ended).toEqual([0, null])
  const faults: string[] = []
  for await (const fault of verify(openFolder(undefined, join(folder, 'published')))) faults.push(fault)
  expect(faults).toEqual([])
})
