import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { toProgram } from '../../tools/children.ts'
import { type Catalog, verify } from '../../workers/publish/catalog.ts'
import { publish } from '../../workers/publish/publish.ts'
import { openTarget } from '../../workers/publish/target.ts'
import { createApiDatabase } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { storeEveryDataset } from '../support/every-dataset.ts'
import { type S3Server, startS3Server } from '../support/s3-server.ts'
import { silent } from '../support/silent.ts'
import { toStoreSettings } from '../support/store-settings.ts'

const NOW = Date.parse('2024-03-03T12:02:30Z')
const TO = 's3://bucket/daos/published'
const PREFIX = '/bucket/daos/published'

let server: S3Server
let config: ReturnType<typeof createTestConfig>
let database: Awaited<ReturnType<typeof createApiDatabase>>

beforeAll(async () => {
  server = await startS3Server()
  config = createTestConfig({
    ...{ PUBLISH_S3_ENDPOINT: server.url, PUBLISH_S3_ACCESS_KEY_ID: 'key' },
    PUBLISH_S3_SECRET_ACCESS_KEY: 'secret',
  })
  database = await createApiDatabase(config)
  await storeEveryDataset(database.writer, database.registry, NOW)
})
afterAll(async () => {
  await database?.drop()
  await server?.close()
})

const openStore = () => openTarget(database.writer, TO, config.publish.s3)
const run = () =>
  publish({
    ...{ db: database.writer, registry: database.registry, target: openStore(), keepDays: 7 },
    ...{ publicUrl: 'https://data.example', log: silent, now: () => NOW },
  })

const readCatalog = () => JSON.parse(String(server.objects.get(`${PREFIX}/catalog.json`))) as Catalog

async function findFaults(): Promise<string[]> {
  const faults: string[] = []
  for await (const fault of verify(openStore())) faults.push(fault)
  return faults
}

describe('publish to an object store', () => {
  it('writes every file, and the catalog last in one request', async () => {
    const { written, rows } = await run()
    expect(written.length).toBeGreaterThan(20)
    expect(rows).toBeGreaterThan(1_000)
    const { datasets, files } = readCatalog()
    const named = [...datasets.flatMap(({ partitions }) => partitions), ...files].map(({ path }) => `${PREFIX}/${path}`)
    const copies = ['README.md', 'clickhouse.sql', 'croissant.json', 'load.sql', 'catalog.json']
    expect([...server.objects.keys()].sort()).toEqual([...named, ...copies.map((name) => `${PREFIX}/${name}`)].sort())
    const ofCatalog = server.writes.filter((line) => line.includes('catalog.json'))
    expect(ofCatalog).toEqual([`PUT ${PREFIX}/catalog.json`])
    expect(server.writes.at(-1)).toEqual(ofCatalog[0])
    expect(await findFaults()).toEqual([])
  })

  it('writes a text of some megabytes as it is, in one request', async () => {
    const long = `it's "quoted" \\\\ \\n é\n{x: String}\n`.repeat(100_000)
    await openStore().writeText('long.txt', long)
    expect(String(server.objects.get(`${PREFIX}/long.txt`)) === long).toBe(true)
    expect(server.writes.at(-1)).toBe(`PUT ${PREFIX}/long.txt`)
    expect((await openStore().readText('long.txt')) === long).toBe(true)
    server.replace(`${PREFIX}/long.txt`, undefined)
  })

  it('writes nothing when nothing changed', async () => {
    const before = server.writes.length
    expect((await run()).written).toEqual([])
    expect(server.writes).toHaveLength(before)
  })

  it('finds objects that are missing or differ, and writes missing ones again', async () => {
    const [one, another] = ['treasury', 'votes'].map(
      (wanted) => readCatalog().datasets.find(({ name }) => name === wanted)?.partitions[0],
    )
    const paths = [`${PREFIX}/${one?.path}`, `${PREFIX}/${another?.path}`] as const
    const flipped = Buffer.from(server.objects.get(paths[1]) ?? '')
    flipped[100] = (flipped[100] ?? 0) ^ 1
    server.replace(paths[0], undefined)
    server.replace(paths[1], flipped)
    expect(await findFaults()).toEqual([`${one?.path}: missing`, expect.stringMatching(`^${another?.path}: SHA-256`)])
    server.replace(paths[1], undefined)
    expect([...(await run()).written].sort()).toEqual([one?.path, another?.path].sort())
    expect(await findFaults()).toEqual([])
  })
})

describe('npm run publish -- verify --from s3://', () => {
  it('reads the objects with the keys of the settings', async () => {
    const file = join(import.meta.dirname, '../../workers/publish/main.ts')
    const child = spawn(process.execPath, [...toProgram(file), 'verify', '--from', TO], {
      env: {
        ...{ ...process.env, ...toStoreSettings(config), PUBLISH_S3_ENDPOINT: server.url },
        ...{ PUBLISH_S3_ACCESS_KEY_ID: 'key', PUBLISH_S3_SECRET_ACCESS_KEY: 'secret' },
      },
    })
    const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
    expect({ code, stdout }, stderr).toEqual({ code: 0, stdout: `${TO}: every file is as the catalog says\n` })
  })
})
