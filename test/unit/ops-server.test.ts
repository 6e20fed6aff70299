import { get } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findFreePort } from '../../shared/free-port.ts'
import { type OpsServer, startOpsServer } from '../../shared/ops/ops-server.ts'
import { createMetrics } from '../../shared/telemetry/metrics.ts'

let ops: OpsServer | undefined
let port: number

beforeAll(async () => {
  port = await findFreePort()
  const pages = {
    path: '/queues',
    listener: (_: unknown, response: { end(text: string): void }) => response.end('queues'),
  }
  ops = await startOpsServer({
    ...{ registry: createMetrics('test'), checks: {}, pages, host: '127.0.0.1', port, setting: 'X_OPS_PORT' },
    hosts: ['api.monitoring.svc'],
  })
})
afterAll(() => ops?.close())

const request = (path: string, host: string) =>
  new Promise<{ status: number | undefined; text: string }>((resolve, reject) => {
    get({ host: '127.0.0.1', port, path, headers: { host } }, async (response) => {
      let text = ''
      for await (const chunk of response) text += chunk
      resolve({ status: response.statusCode, text })
    }).on('error', reject)
  })

describe('startOpsServer', () => {
  it.each([
    '127.0.0.1',
    '127.0.0.1:9464',
    '10.1.2.3:9464',
    '[::1]:9464',
    'localhost:9464',
    'worker:9466',
    'api.monitoring.svc',
  ])('accepts a request with the Host %s', async (host) => {
    expect((await request('/health/live', host)).status).toBe(200)
  })

  // A browser page's host name may be changed to resolve to this machine (DNS rebinding).
  it.each(['/metrics', '/queues', '/health/ready'])('rejects %s with an unknown Host', async (path) => {
    const { status, text } = await request(path, 'rebound.example.com:9464')
    expect(status).toBe(403)
    expect(JSON.parse(text).error).toContain('OPS_HOSTS')
  })
})
