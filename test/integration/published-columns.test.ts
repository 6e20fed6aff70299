import { createHash } from 'node:crypto'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { CATALOG, type Catalog, type Partition } from '../../workers/publish/catalog.ts'
import { createPublished, type Published } from '../support/published.ts'

let store: Published
beforeAll(async () => {
  store = await createPublished()
})
afterAll(() => store?.close())

const OLD = ['prices', 'holders', 'fees']

/** Replaces the files of a partition by one without the column `source`, as an earlier version has written it. */
async function writeOldFile(partition: Partition): Promise<Partition> {
  const path = partition.path.replace(/part-\w+/, `part-${'0'.repeat(16)}`)
  const instance = await DuckDBInstance.create()
  const connection = await instance.connect()
  await connection.run(
    `COPY (SELECT * EXCLUDE (source) FROM read_parquet('${join(store.folder, partition.path)}', hive_partitioning = false))
     TO '${join(store.folder, path)}' (FORMAT parquet)`,
  )
  connection.closeSync()
  instance.closeSync()
  const bytes = await readFile(join(store.folder, path))
  const sha256 = createHash('sha256').update(bytes).digest('hex')
  return { ...partition, path, bytes: bytes.length, sha256, version: '0'.repeat(16) }
}

it('adds a new column to every file of a publication of an earlier version, which stays readable until then', async () => {
  const written = await store.catalogOf()
  const datasets: Catalog['datasets'][number][] = []
  for (const dataset of written.datasets) {
    if (!OLD.includes(dataset.name)) datasets.push(dataset)
    else {
      const partitions: Partition[] = []
      for (const partition of dataset.partitions) partitions.push(await writeOldFile(partition))
      const columns = dataset.columns.filter(({ name }) => name !== 'source')
      datasets.push({ ...dataset, columns, partitions })
    }
  }
  await writeFile(join(store.folder, CATALOG), JSON.stringify({ ...written, datasets }))
  expect(await store.faultsOf()).toEqual([])

  // A run with other datasets only leaves the old files in the catalog, and the views read them.
  store.clock.at += 60_000
  await store.run({ only: ['fees'] })
  expect(await store.query('SELECT count(*) > 0 AS known FROM fees WHERE source IS NOT NULL')).toEqual([
    { known: true },
  ])
  const olderThan = await store.catalogOf()
  const namesOf = (name: string) =>
    olderThan.datasets.find((one) => one.name === name)?.columns.map((column) => column.name)
  expect([namesOf('fees')?.includes('source'), namesOf('holders')?.includes('source')]).toEqual([true, false])
  expect((await store.query('SELECT count(*)::INT AS rows FROM holders'))[0]?.rows).toBeGreaterThan(0)

  store.clock.at += 60_000
  await store.run()
  expect(await store.faultsOf()).toEqual([])
  for (const name of OLD) {
    const before = olderThan.datasets.find((one) => one.name === name)?.partitions ?? []
    const after = await store.partitionsOf(name)
    expect(after.length, name).toBe(before.length)
    for (const { path } of after) {
      const found = await store.query(
        `SELECT count(*)::INT AS found FROM parquet_schema('${join(store.folder, path)}') WHERE name = 'source'`,
      )
      expect([path, found]).toEqual([path, [{ found: 1 }]])
    }
    // Readers of the older catalog still find its files.
    for (const { path } of before) expect((await stat(join(store.folder, path))).isFile()).toBe(true)
  }
  store.clock.at += 60_000
  expect((await store.run()).written).toEqual([])
})
