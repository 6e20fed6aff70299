import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Child, startChild, untilReady } from '../../tools/children.ts'
import { runHostile, toCostAttacks } from '../fuzz/hostile.ts'
import { createApiDatabase } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { storeEveryDataset } from '../support/every-dataset.ts'
import { toStoreSettings } from '../support/store-settings.ts'

const REQUESTS = 60
const ASSETS = join(import.meta.dirname, '../../web/dist/assets')
const config = createTestConfig()
let database: Awaited<ReturnType<typeof createApiDatabase>>
let api: Child
let url: string

beforeAll(async () => {
  database = await createApiDatabase(config)
  await storeEveryDataset(database.writer, database.registry, Date.now())
  api = startChild('api', join(import.meta.dirname, '../../api/main.ts'), {
    ...{ ...toStoreSettings(config), API_PORT: '0', API_OPS_PORT: '0', API_DRAIN_SECONDS: '0', LOG_LEVEL: 'silent' },
  })
  url = String((await untilReady(api)).url)
})
afterAll(async () => {
  await api?.stop()
  await database?.drop()
})

it('other clients get their cached answers during floods of one address with costly requests', async () => {
  const names = existsSync(ASSETS) ? readdirSync(ASSETS) : []
  const files = names.filter((name) => name.endsWith('.wasm.gz')).map((name) => `/assets/${name.slice(0, -3)}`)
  const tokens = database.registry.tokens.map(({ id }) => id)
  const attacks = toCostAttacks({ tokens, files, now: Date.now() })
  const nothing = { name: 'nothing', begin: async () => () => {} }
  const results = await runHostile({ url, attacks: [nothing, ...attacks], requests: REQUESTS })
  for (const { name, p50, p95 } of results) console.log(`beside ${name}: p50 ${p50} ms, p95 ${p95} ms`)
  expect(results.filter(({ failures, requests }) => failures > 0 || requests < REQUESTS)).toEqual([])
  expect(api.process.exitCode).toBeNull()
})
