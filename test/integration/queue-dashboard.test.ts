import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Redis } from 'ioredis'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createQueue, type DatasetQueue } from '../../shared/queue/queues.ts'
import { createRedis } from '../../shared/queue/redis.ts'
import { createQueueDashboard, DASHBOARD_PATH } from '../../workers/monitoring/queue-dashboard.ts'
import { createTestConfig } from '../support/database.ts'
import { silent } from '../support/silent.ts'

let redis: Redis
let queue: DatasetQueue
beforeEach(async () => {
  const config = createTestConfig()
  redis = createRedis(config.redis.url, silent)
  queue = createQueue('prices', redis, config.redis.prefix)
  await queue.add('prices', { kind: 'slot', slot: 0 }, { jobId: 'slot' })
})
afterEach(async () => {
  await queue.close()
  redis.disconnect()
})

async function start(token?: string) {
  const server = createServer(createQueueDashboard([queue], token))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}${DASHBOARD_PATH}`
  const password = (text: string) => ({ authorization: `Basic ${Buffer.from(`me:${text}`).toString('base64')}` })
  const remove = async (headers: Record<string, string> = {}) =>
    (await fetch(`${base}/api/queues/prices/slot/clean`, { method: 'PUT', headers })).status
  const scan = async (headers: Record<string, string> = {}) => fetch(`${base}/api/queues`, { headers })
  const open = (path: string) => fetch(`${base}${path}`)
  return { look: scan, open, remove, password, close: () => new Promise((resolve) => server.close(resolve)) }
}

describe('the queue dashboard', () => {
  it('is read-only without a token', async () => {
    const dashboard = await start()
    expect(await (await dashboard.look()).json()).toMatchObject({
      queues: [{ name: 'prices', readOnlyMode: true, counts: { waiting: 1 } }],
    })
    expect(await dashboard.remove()).toBeGreaterThanOrEqual(400)
    expect(await queue.getWaitingCount()).toBe(1)
    await dashboard.close()
  })

  it('loads nothing from other hosts', async () => {
    const dashboard = await start()
    const page = await dashboard.open('')
    const html = await page.text()
    expect(html).toMatch(/^<!DOCTYPE html>/)
    expect(page.headers.get('content-security-policy')).toMatch(/^default-src 'self' (?!.*https?:)/)
    const loaded = [...html.matchAll(/<(?:link|script|img)\b[^>]*\b(?:href|src)="([^"]+)"/g)].map(([, url = '']) => url)
    const styles = loaded.filter((url) => url.endsWith('.css'))
    expect([styles.length, loaded.length]).toEqual([1, expect.toSatisfy((count) => count > 4)])
    for (const url of loaded) expect(url).not.toMatch(/^(https?:)?\/\//)
    for (const url of styles) {
      const css = await (await dashboard.open(`/${url}`)).text()
      expect(css).toContain('{')
      expect(css).not.toMatch(/(@import|url\()\s*["']?(https?:)?\/\//)
    }
    await dashboard.close()
  })

  it('permits changes with the token, from its own pages only', async () => {
    const dashboard = await start('secret')
    const existing = dashboard.password('secret')
    expect([(await dashboard.look()).status, (await dashboard.look(dashboard.password('guess'))).status]).toEqual([
      401, 401,
    ])
    expect((await dashboard.look(existing)).status).toBe(200)
    expect([await dashboard.remove(), await dashboard.remove({ ...existing, 'sec-fetch-site': 'cross-site' })]).toEqual(
      [401, 403],
    )
    expect(await queue.getWaitingCount()).toBe(1)
    expect(await dashboard.remove({ ...existing, 'sec-fetch-site': 'same-origin' })).toBeLessThan(300)
    expect(await queue.getWaitingCount()).toBe(0)
    await dashboard.close()
  })
})
