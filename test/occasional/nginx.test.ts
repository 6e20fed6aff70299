import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { get, type IncomingHttpHeaders, type IncomingMessage, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { createApiServer } from '../../api/server.ts'
import { parseConfig } from '../../shared/config/config.ts'
import { findFreePort } from '../../shared/free-port.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { createMetrics } from '../../shared/telemetry/metrics.ts'
import { createHandFeed, emptyLog } from '../support/api.ts'
import { noDatabase } from '../support/no-database.ts'
import { silent } from '../support/silent.ts'

const hasNginx = spawnSync('nginx', ['-v']).status === 0
if (!hasNginx) console.log('nginx is not installed: its documented configuration is not tested')

let server: Server
let nginx: ChildProcess
let folder: string
let [url, configuration] = ['', '']
const seen: IncomingHttpHeaders[] = []

/** The documented configuration with other ports, in a temporary folder. */
function toConfiguration(apiPort: number, port: number): string {
  const docs = readFileSync(join(import.meta.dirname, '../../docs/operations.md'), 'utf8')
  const documented = /```nginx\n(.*?)```/s.exec(docs)?.[1] ?? ''
  const own = documented
    .replace('127.0.0.1:3000', `127.0.0.1:${apiPort}`)
    .replace('listen 80', `listen 127.0.0.1:${port}`)
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((of) => `${of}_temp_path ${folder}/${of};`)
  return `daemon off; pid ${folder}/pid; error_log ${folder}/error.log;
events {}
http { access_log off; ${temporary.join(' ')}
${own}}`
}

/** Sends a request from a local address. */
async function request(localAddress: string, path: string): Promise<IncomingMessage> {
  const [response] = await once(get(url + path, { localAddress, agent: false }), 'response')
  return response
}

beforeAll(async () => {
  if (!hasNginx) return
  const config = parseConfig({ TRUSTED_PROXIES: '127.0.0.1', STREAM_CLIENTS_PER_ADDRESS: '500' })
  server = createApiServer({
    ...{ config, db: noDatabase, registry: loadRegistry(), changeFeed: createHandFeed(), changeStream: emptyLog },
    ...{ log: silent, metrics: createMetrics('test') },
  })
  server.on('request', ({ headers }) => seen.push(headers))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  folder = mkdtempSync(join(tmpdir(), 'dao-data-nginx-'))
  const port = await findFreePort()
  url = `http://127.0.0.1:${port}`
  configuration = join(folder, 'nginx.conf')
  writeFileSync(configuration, toConfiguration((server.address() as AddressInfo).port, port))
  nginx = spawn('nginx', ['-c', configuration, '-p', folder], { stdio: 'ignore' })
  await vi.waitFor(() => fetch(url), { timeout: 60_000 })
})
afterAll(async () => {
  if (!hasNginx) return
  const ended = once(nginx, 'exit')
  nginx.kill('SIGTERM')
  await ended
  server.closeAllConnections()
  server.close()
  rmSync(folder, { recursive: true })
})

describe.skipIf(!hasNginx)('documented nginx configuration', () => {
  it('passes nginx -t', () => {
    execFileSync('nginx', ['-t', '-c', configuration, '-p', folder], { stdio: 'pipe' })
  })

  it('replaces the address that a client claims to have', async () => {
    const response = await fetch(`${url}/data/categories`, {
      headers: { 'x-forwarded-for': '192.0.2.1', forwarded: 'for=192.0.2.1' },
    })
    expect(response.status).toBe(200)
    const { 'x-forwarded-for': forwardedFor, forwarded } = seen.at(-1) ?? {}
    expect([forwardedFor, forwarded]).toEqual(['127.0.0.1', undefined])
  })

  it('forwards stream events without buffering', async () => {
    const disconnected = new AbortController()
    const response = await fetch(`${url}/data/stream`, { signal: disconnected.signal })
    const { value } = (await response.body?.getReader().read()) ?? {}
    expect([response.status, value?.length]).toEqual([200, expect.any(Number)])
    disconnected.abort()
  })

  it('limits the open connections of an address to 100', async () => {
    const responses = await Promise.all(Array.from({ length: 101 }, () => request('127.0.0.2', '/data/stream')))
    const statuses = responses.map(({ statusCode }) => statusCode)
    expect(statuses.filter((status) => status === 200)).toHaveLength(100)
    expect(statuses.filter((status) => status === 429)).toHaveLength(1)
    for (const response of responses) response.destroy()
  })

  it('admits a burst of 200 requests of an address, and rejects a flood with 429', async () => {
    let admitted = 0
    await expect
      .poll(
        async () => {
          const responses = await Promise.all(Array.from({ length: 50 }, () => request('127.0.0.3', '/health/live')))
          const statuses = responses.map((response) => response.resume().statusCode)
          admitted += statuses.filter((status) => status === 200).length
          return statuses
        },
        { interval: 1, timeout: 60_000 },
      )
      .toContain(429)
    expect(admitted).toBeGreaterThanOrEqual(200)
  })

  it('rejects too large URLs, bodies and headers with 414, 413 and 400', async () => {
    expect((await fetch(`${url}/data/tokens?name=${'x'.repeat(33_000)}`)).status).toBe(414)
    expect((await fetch(`${url}/mcp`, { method: 'POST', body: 'x'.repeat(65_537) })).status).toBe(413)
    const client = connect(Number(new URL(url).port), '127.0.0.1')
    client.write(`GET / HTTP/1.1\r\nHost: a\r\nX-Large: ${'x'.repeat(33_000)}\r\n\r\n`)
    expect(String((await once(client, 'data'))[0])).toContain('HTTP/1.1 400')
    client.destroy()
  })
})
