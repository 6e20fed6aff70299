import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, inject, it, onTestFinished, vi } from 'vitest'
import { findFreePort } from '../../shared/free-port.ts'
import { jobs } from '../../workers/jobs/list.ts'

const ROOT = join(import.meta.dirname, '../..')
const SCRIPT = 'tools/container.sh'
const DOCKERFILE = readFileSync(join(ROOT, 'Dockerfile'), 'utf8')

/** The start script of the container over the compiled programs, which have the layout of the image. */
async function start(volume: string, mode: string) {
  const port = await findFreePort()
  const off = jobs.map(({ name }) => name).filter((name) => name !== 'fees')
  const env = {
    ...process.env,
    ...{ CLICKHOUSE_URL: '', REDIS_URL: '', CLICKHOUSE_DATABASE: '', QUEUE_PREFIX: '', PUBLISH_TO: '' },
    ...{ API_OPS_PORT: '0', SCHEDULER_OPS_PORT: '0', WORKER_OPS_PORT: '0', API_PORT: String(port) },
    ...{ DATA_DIR: volume, API_HOST: '127.0.0.1', DATASETS_OFF: off.join(','), LOG_LEVEL: 'silent' },
  }
  const child = spawn('sh', [join(inject('compiled'), SCRIPT), mode], { cwd: tmpdir(), env })
  const output = { text: '' }
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text) => (output.text += text))
  const ended = once(child, 'exit')
  onTestFinished(async () => {
    child.kill('SIGTERM')
    await ended
  })
  const untilUp = () => vi.waitFor(() => expect(output.text).toContain('dao-data is up'), { timeout: 150_000 })
  return { url: `http://127.0.0.1:${port}`, child, ended, output, untilUp }
}

const countFees = async (url: string): Promise<number> => {
  const { datasets } = (await (await fetch(`${url}/data/status`)).json()) as {
    datasets: { dataset: string; rows: number }[]
  }
  return datasets.find(({ dataset }) => dataset === 'fees')?.rows ?? 0
}

describe('container of the whole system', () => {
  it('runs from one volume, stops with the signal of the container, and continues with its data', async () => {
    const volume = mkdtempSync(join(tmpdir(), 'dao-data-volume-'))
    onTestFinished(() => rmSync(volume, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 }))
    const first = await start(volume, 'demo')
    await first.untilUp()
    await vi.waitFor(async () => expect(await countFees(first.url)).toBeGreaterThan(0), { timeout: 150_000 })
    first.child.kill('SIGTERM')
    expect(await first.ended).toEqual([0, null])
    for (const store of ['clickhouse', 'redis']) expect(existsSync(join(volume, 'demo', store)), store).toBe(true)
    const second = await start(volume, 'demo')
    await second.untilUp()
    expect(await countFees(second.url)).toBeGreaterThan(0)
    second.child.kill('SIGTERM')
    expect(await second.ended).toEqual([0, null])
  })

  it.each([
    ['an unknown mode', ['production'], tmpdir(), 2, 'expected demo or live, got "production"'],
    ['a folder that is no folder', ['live'], '/dev/null', 1, 'expected a volume that the user'],
  ])('rejects %s', (_what, args, volume, code, reason) => {
    const { status, stderr } = spawnSync('sh', [join(inject('compiled'), SCRIPT), ...args], {
      encoding: 'utf8',
      env: { ...process.env, DATA_DIR: volume },
    })
    expect([status, stderr]).toEqual([code, expect.stringContaining(reason)])
  })

  it('is the start of the target, which is not the default one', () => {
    const stages = DOCKERFILE.split(/^FROM /m).slice(1)
    const all = stages.find((stage) => /^\S+ AS all\n/.test(stage)) ?? ''
    expect(all).toContain(`ENTRYPOINT ["sh", "${SCRIPT}"]`)
    expect(stages.at(-1)).toContain('CMD ["node", "api/main.js"]')
  })

  it('has every package that its programs import', () => {
    const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
    const added = [...DOCKERFILE.matchAll(/"([\w-]+)@\$\(node -p/g)].map(([, name]) => String(name))
    const installed = new Set([
      ...Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies }),
      ...added,
    ])
    const queue = ['tools/stack.ts', 'tools/redis.ts', 'clickhouse/server.ts', 'test/upstream/main.ts', 'api/main.ts']
    queue.push('workers/programs/worker.ts', 'workers/programs/scheduler.ts')
    const missing = new Set<string>()
    const seen = new Set(queue)
    for (const file of queue) {
      const code = readFileSync(join(ROOT, file), 'utf8')
      for (const [, type, name = ''] of code.matchAll(/^(?:import|export)( type)?\b[^'"]*?from '([^']+)'/gm)) {
        if (type !== undefined) continue
        const inside = name.startsWith('.') ? join(dirname(file), name) : undefined
        if (inside !== undefined && !inside.endsWith('.json') && !seen.has(inside)) {
          seen.add(inside)
          queue.push(inside)
        }
        const packageName = name
          .split('/')
          .slice(0, name.startsWith('@') ? 2 : 1)
          .join('/')
        const isOwn = inside !== undefined || name.startsWith('node:') || builtinModules.includes(name)
        if (!isOwn && !installed.has(packageName)) missing.add(`${packageName} of ${file}`)
      }
    }
    expect(seen.size).toBeGreaterThan(200)
    expect([...missing]).toEqual([])
  })
})
