import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { clickhouseDir, readClickHouseAccess } from '../../shared/config/own-stores.ts'
import { findFreePort } from '../../shared/free-port.ts'
import { untilReady } from '../../tools/children.ts'
import { createFullDisk } from '../faults/disk.ts'
import { startOwnClickHouse } from '../support/own-clickhouse.ts'
import { findProcesses } from '../support/system-processes.ts'

const PATIENTLY = { timeout: 30_000 }
const root = join(import.meta.dirname, '../..')
const folders: string[] = []
const started: { child: ChildProcess; dataDir: string }[] = []

function createFolder(): string {
  const dir = mkdtempSync(join(tmpdir(), 'dao-data-lifetime-'))
  folders.push(dir)
  return dir
}

/** Process ids of a data folder's processes, npm and the server. */
const processesOf = (dataDir: string): number[] =>
  findProcesses(({ environment }) => environment.includes(`DATA_DIR=${dataDir}`)).map(({ pid }) => pid)

/** `npm run clickhouse`, as an operator starts it. */
function run(dataDir: string, settings: Record<string, string> = {}) {
  const child = spawn('npm', ['run', '-s', 'clickhouse'], {
    cwd: root,
    env: { ...process.env, DATA_DIR: dataDir, CLICKHOUSE_EMBEDDED_PORT: '0', ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  started.push({ child, dataDir })
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text
  })
  const closed = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>
  return {
    child,
    /** Resolves with the exit code, when all holders of the output have exited. */
    ended: async () => ({ code: (await closed)[0], errors }),
    ready: async () => String((await untilReady({ name: 'ClickHouse', process: child })).url),
    /** The server's process id, from its folder. */
    pid: () => Number(readFileSync(join(clickhouseDir(dataDir), 'server.lock'), 'utf8')),
  }
}

function post(dataDir: string, sql: string): Promise<Response> {
  const access = readClickHouseAccess(clickhouseDir(dataDir))
  const headers = { 'X-ClickHouse-User': `${access?.writer.name}`, 'X-ClickHouse-Key': `${access?.writer.password}` }
  return fetch(String(access?.url), { method: 'POST', body: sql, headers })
}
const query = async (dataDir: string, sql: string) => (await (await post(dataDir, sql)).text()).trim()

/** Starts a statement and resolves when it runs; the response is wrapped in an array, so that await does not wait for it. */
async function begin(dataDir: string, sql: string): Promise<[Promise<string>]> {
  const answer = query(dataDir, sql).catch(String)
  const running = `SELECT count() FROM system.processes WHERE query = '${sql}'`
  await expect.poll(() => query(dataDir, running), PATIENTLY).toBe('1')
  return [answer]
}

/** Five seconds, also on a busy machine: shorter than the time that a running statement gets to finish. */
const SLOW = 'SELECT count() FROM numbers(50) WHERE sleepEachRow(0.1) = 0 SETTINGS max_block_size = 1'
const ENDLESS = 'SELECT sum(sipHash64(number)) > 0 FROM numbers(1000000000000)'

afterEach(async () => {
  for (const { child, dataDir } of started.splice(0)) {
    for (const pid of processesOf(dataDir)) process.kill(pid, 'SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }
  for (const dir of folders.splice(0)) rmSync(dir, { recursive: true, force: true })
})

describe('npm run clickhouse', () => {
  it('creates passwords readable by their owner only, and keeps them and the rows over restarts', async () => {
    const dataDir = createFolder()
    const first = run(dataDir)
    const url = await first.ready()
    const dir = clickhouseDir(dataDir)
    const access = readClickHouseAccess(dir)
    expect(access).toMatchObject({ url, writer: { name: 'writer' }, reader: { name: 'reader' } })
    expect(access?.writer.password).not.toBe(access?.reader.password)
    const modeOf = (...path: string[]) => (statSync(join(dir, ...path)).mode & 0o777).toString(8)
    expect(modeOf('server')).toBe('700')
    expect(
      ['access.json', ...['config.xml', 'users.xml', 'start.sql'].map((f) => `server/${f}`)].map((f) => modeOf(f)),
    ).toEqual(['600', '600', '600', '600'])
    await query(dataDir, 'CREATE TABLE kept (a UInt8) ENGINE = MergeTree ORDER BY a AS SELECT 7 AS a')
    first.child.kill('SIGTERM')
    expect(await first.ended()).toEqual({ code: 0, errors: '' })
    expect(processesOf(dataDir)).toEqual([])

    const second = run(dataDir)
    const newUrl = await second.ready()
    expect(readClickHouseAccess(dir)).toEqual({ ...access, url: newUrl })
    expect(await query(dataDir, 'SELECT a FROM kept')).toBe('7')
  })

  it('uses the configured users and passwords', async () => {
    const dataDir = createFolder()
    const file = join(dataDir, 'secret')
    writeFileSync(file, 'a&b<c>"\'é\n')
    const input = {
      CLICKHOUSE_USER: 'owner',
      CLICKHOUSE_PASSWORD_FILE: file,
      CLICKHOUSE_READ_PASSWORD: 'of the reader',
    }
    await run(dataDir, input).ready()
    const access = readClickHouseAccess(clickhouseDir(dataDir))
    expect(access?.writer).toEqual({ name: 'owner', password: 'a&b<c>"\'é' })
    const headers = { Authorization: `Basic ${Buffer.from('reader:of the reader').toString('base64')}` }
    expect(await (await fetch(`${access?.url}/?query=SELECT+currentUser()`, { headers })).text()).toBe('reader\n')
    const owner = { Authorization: `Basic ${Buffer.from('owner:a&b<c>"\'é').toString('base64')}` }
    expect(await (await fetch(`${access?.url}/?query=SELECT+currentUser()`, { headers: owner })).text()).toBe('owner\n')
  })

  describe('npm run clickhouse that cannot start', () => {
    const fails = async (dataDir: string, settings: Record<string, string>, reason: string) => {
      const { code, errors } = await run(dataDir, settings).ended()
      expect(errors).toContain(reason)
      expect([errors.trim().split('\n').length, code]).toEqual([1, 1])
      expect(processesOf(dataDir)).toEqual([])
    }

    it('names the reason in one line if another server uses the folder', async () => {
      const dataDir = createFolder()
      const first = run(dataDir)
      const url = await first.ready()
      const { code, errors } = await run(dataDir).ended()
      const lock = join(clickhouseDir(dataDir), 'server.lock')
      expect(errors).toBe(`${clickhouseDir(dataDir)} is in use by another ClickHouse (its process id is in ${lock})\n`)
      expect([code, processesOf(dataDir).includes(first.pid()), await query(dataDir, 'SELECT 1')]).toEqual([
        1,
        true,
        '1',
      ])
      expect(readClickHouseAccess(clickhouseDir(dataDir))?.url).toBe(url)
    })

    it.each(['CLICKHOUSE_EMBEDDED_PORT', 'CLICKHOUSE_EMBEDDED_TCP_PORT'])(
      'names the reason in one line if %s is in use',
      async (name) => {
        const another = createServer().listen(0, '127.0.0.1')
        await once(another, 'listening')
        const port = String((another.address() as { port: number }).port)
        await fails(createFolder(), { [name]: port }, `ClickHouse cannot listen on 127.0.0.1:${port}`)
        another.close()
      },
    )

    it('names the reason in one line if the folder is below a file', async () => {
      const file = join(createFolder(), 'file')
      writeFileSync(file, '')
      await fails(join(file, 'data'), {}, join(file, 'data', 'clickhouse'))
    })

    it('names the reason in one line if the disk is full', async () => {
      const disk = createFullDisk()
      if (disk === undefined) return
      try {
        disk.fail()
        await fails(disk.dir, {}, `ClickHouse cannot write its folder ${clickhouseDir(disk.dir)}: ENOSPC`)
      } finally {
        disk.remove()
      }
    })

    it('names the reason in one line if there is no library for this platform', async () => {
      const reason = `no ClickHouse for ${process.platform}-${process.arch}`
      await fails(createFolder(), { CHDB_LIBCHDB_PATH: '/nowhere/libchdb.so' }, reason)
    })

    it.each(['default', 'reader', 'two words'])(
      'names the reason in one line if the writer is named %s',
      async (name) => {
        await fails(createFolder(), { CLICKHOUSE_USER: name }, `"${name}" and "reader"`)
      },
    )
  })

  it.each(['SIGTERM', 'SIGINT'] as const)('finishes a running statement at %s', async (signal) => {
    const dataDir = createFolder()
    const server = run(dataDir)
    await server.ready()
    const [answer] = await begin(dataDir, SLOW)
    process.kill(server.pid(), signal)
    expect(await answer).toBe('50')
    expect(await server.ended()).toEqual({ code: 0, errors: '' })
  })

  it('exits without waiting at the second signal', async () => {
    const dataDir = createFolder()
    const server = run(dataDir)
    await server.ready()
    const [answer] = await begin(dataDir, ENDLESS)
    const pid = server.pid()
    const asking = setInterval(() => process.kill(pid, 'SIGTERM'), 1_100)
    server.child.once('exit', () => clearInterval(asking))
    expect(await server.ended()).toMatchObject({ code: 130, errors: '' })
    expect(await answer).toContain('fetch failed')
  })

  it('leaves no process when npm is killed', async () => {
    const dataDir = createFolder()
    const { child, ready, pid } = run(dataDir)
    await ready()
    expect(processesOf(dataDir)).toContain(pid())
    child.kill('SIGKILL')
    await expect.poll(() => processesOf(dataDir), PATIENTLY).toEqual([])
  })

  it('leaves no process when npm is killed before the server is ready', async () => {
    const dataDir = createFolder()
    const { child } = run(dataDir)
    await expect.poll(() => existsSync(join(clickhouseDir(dataDir), 'server.lock')), PATIENTLY).toBe(true)
    child.kill('SIGKILL')
    await expect.poll(() => processesOf(dataDir), PATIENTLY).toEqual([])
  })

  it('restarts after a kill on the same port', async () => {
    const dataDir = createFolder()
    const settings = { CLICKHOUSE_EMBEDDED_PORT: String(await findFreePort()) }
    for (let round = 0; round < 2; round++) {
      const server = run(dataDir, settings)
      await server.ready()
      await query(dataDir, 'CREATE TABLE IF NOT EXISTS filled (a UInt64) ENGINE = MergeTree ORDER BY a')
      const [answer] = await begin(dataDir, 'INSERT INTO filled SELECT number FROM numbers(100000000000)')
      process.kill(server.pid(), 'SIGKILL')
      expect(await answer).toContain('fetch failed')
      await server.ended()
    }
    await run(dataDir, settings).ready()
    expect(await query(dataDir, 'SELECT 1')).toBe('1')
  })
})

describe('embedded server that is stopped', () => {
  it('cancels statements that exceed the time limit', async () => {
    const server = await startOwnClickHouse({ finishMs: 200 })
    const { writer } = server.users
    const headers = { 'X-ClickHouse-User': writer.name, 'X-ClickHouse-Key': writer.password }
    const search = new URLSearchParams({ query: ENDLESS, query_id: 'endless' })
    const answer = fetch(`${server.url}/?${search}`, { headers })
    const running = `${server.url}/?query=SELECT+count()+FROM+system.processes+WHERE+query_id='endless'`
    await expect.poll(async () => (await (await fetch(running, { headers })).text()).trim(), PATIENTLY).toBe('1')
    await server.stop()
    expect((await answer).headers.get('x-clickhouse-exception-code')).toBe('394')
    expect(server.exitCode()).toBe(0)
  })

  it('exits although a statement cannot be cancelled because its client does not read', async () => {
    const server = await startOwnClickHouse({ finishMs: 200 })
    const { writer } = server.users
    const headers = { 'X-ClickHouse-User': writer.name, 'X-ClickHouse-Key': writer.password }
    const endless = await fetch(`${server.url}/?query=SELECT+*+FROM+system.numbers`, { headers })
    await server.stop()
    expect(server.exitCode()).toBe(0)
    await expect(endless.text()).rejects.toThrow()
  })
})
