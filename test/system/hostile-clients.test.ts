import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Child, startChild, untilReady } from '../../tools/children.ts'
import { MEMORY_ATTACKS, runHostile, WORK_ATTACKS } from '../fuzz/hostile.ts'

let api: Child
let url: string

beforeAll(async () => {
  const nowhere = { CLICKHOUSE_URL: 'http://127.0.0.1:1', REDIS_URL: 'redis://127.0.0.1:1' }
  api = startChild('api', join(import.meta.dirname, '../../api/main.ts'), {
    ...nowhere,
    ...{ API_PORT: '0', API_OPS_PORT: '0', API_DRAIN_SECONDS: '0', LOG_LEVEL: 'silent' },
    NODE_OPTIONS: '--max-old-space-size=512',
  })
  url = String((await untilReady(api)).url)
})
afterAll(() => api?.stop())

it.each([...MEMORY_ATTACKS, ...WORK_ATTACKS])(
  'API with a heap of 512 MB serves other clients during $name',
  async (attack) => {
    const [result] = await runHostile({ url, attacks: [attack], requests: 50 })
    expect(result).toMatchObject({ name: attack.name, requests: 50, failures: 0 })
    expect(api.process.exitCode).toBeNull()
  },
)
