import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Database } from '../../shared/store/store.ts'
import { toProgram } from '../../tools/children.ts'
import { type Catalog, verify } from '../../workers/publish/catalog.ts'
import { publishDaily } from '../../workers/publish/daily.ts'
import { openFolder, type Target } from '../../workers/publish/target.ts'
import { createPublished, type Published, toNumber } from '../support/published.ts'
import { storeQuotes } from '../support/quotes.ts'
import { silent } from '../support/silent.ts'
import { toStoreSettings } from '../support/store-settings.ts'

let store: Published
beforeAll(async () => {
  store = await createPublished()
})
afterAll(() => store?.close())

/** Prices of February that nothing else in this file corrects, with the price that the files have. */
const AT = Date.parse('2024-02-29T23:50:10Z')
const storePrice = (n: number, price: number) =>
  storeQuotes(store.database.writer, [{ token: store.tokenAt(n).key, at: AT, price, volume_24h: null }])
async function readPrice(n: number): Promise<number | null> {
  const [row] = await store.query(
    `SELECT price FROM prices WHERE interval = '5m' AND token_id = '${store.tokenAt(n).id}' AND observed_at = '2024-02-29 23:50:10'`,
  )
  return toNumber(row?.price)
}

describe('publish', () => {
  it('writes nothing when nothing changed', async () => {
    const before = await store.readTimes()
    store.clock.at += 60_000
    const { written, unchanged } = await store.run()
    expect(written).toEqual([])
    expect(unchanged).toBeGreaterThan(20)
    expect(await store.readTimes()).toEqual(before)
  })

  it('leaves the old publication when it is stopped before the catalog, and goes on from the finished files', async () => {
    const correct = { token: store.tokenAt(1).key, at: Date.parse('2024-02-29T23:50:10Z'), price: 7, volume_24h: 5 }
    await storeQuotes(store.database.writer, [correct])
    const before = await store.catalogOf()
    const target = openFolder(store.database.writer, store.folder)
    const stopped = store.run({
      target: { ...target, writeText: async () => Promise.reject(new Error('killed')) },
    })
    await expect(stopped).rejects.toThrow('killed')
    expect(await store.catalogOf()).toEqual(before)
    expect(await store.faultsOf()).toEqual([])
    const remaining = await store.readTimes()
    // Of the finished files one was damaged since, with the same size.
    const finished = Object.keys(remaining).filter((path) => /interval=5m.*month=02.*part-\w+\.parquet$/.test(path))
    const damaged = finished.find(
      (path) => !before.datasets.some(({ partitions }) => partitions.some((one) => path.endsWith(one.path))),
    )
    const file = await open(String(damaged), 'r+')
    await file.write(Buffer.from('damaged'), 0, 7, 200)
    await file.close()
    store.clock.at += 60_000
    const { written } = await store.run()
    expect(written.length).toBeGreaterThan(5)
    // Each file that was finished is used as it is, except the damaged one.
    expect(written.filter((path) => remaining[join(store.folder, path)] === undefined)).toEqual([])
    const times = await store.readTimes()
    const again = written.filter((path) => times[join(store.folder, path)] !== remaining[join(store.folder, path)])
    expect(again.map((path) => join(store.folder, path))).toEqual([damaged])
    expect(await store.faultsOf()).toEqual([])
    expect(await readPrice(1)).toBe(7)
  })

  it('writes the rows of the version in the catalog if rows are corrected during the publication and taken back', async () => {
    await storePrice(3, 33)
    const target = openFolder(store.database.writer, store.folder)
    const changing: Target = {
      ...target,
      writeParquet: async (path, statement) => {
        if (!path.startsWith('prices/interval=5m/year=2024/month=02')) return target.writeParquet(path, statement)
        await storePrice(3, 34)
        try {
          return await target.writeParquet(path, statement)
        } finally {
          await storePrice(3, 33)
        }
      },
    }
    store.clock.at += 60_000
    await store.run({ target: changing })
    expect(await store.faultsOf()).toEqual([])
    store.clock.at += 60_000
    await store.run()
    expect(await readPrice(3)).toBe(33)
    store.clock.at += 60_000
    expect((await store.run()).written).toEqual([])
  })

  it('writes partitions again whose rows changed between the hash and the file', async () => {
    await storePrice(3, 35)
    const target = openFolder(store.database.writer, store.folder)
    let corrections = 0
    const changing: Target = {
      ...target,
      writeParquet: async (path, statement) => {
        if (corrections === 0 && path.startsWith('prices/interval=5m')) {
          corrections += 1
          await storePrice(3, 36)
        }
        return target.writeParquet(path, statement)
      },
    }
    store.clock.at += 60_000
    await store.run({ target: changing })
    expect([corrections, await readPrice(3)]).toEqual([1, 36])
    store.clock.at += 60_000
    expect((await store.run()).written).toEqual([])
  })

  it('rewrites and reports exactly the partitions of a correction', async () => {
    const before = await store.catalogOf()
    const corrected = { token: store.tokenAt(2).key, at: Date.parse('2024-02-26T00:02:00Z'), price: 9, volume_24h: 5 }
    await storeQuotes(store.database.writer, [corrected])
    store.clock.at += 60_000
    const { written } = await store.run()
    const keys = written.map((path) => path.replace(/\/part-.*/, ''))
    const months = ['5m', '30m', '1h', '4h'].map((interval) => `prices/interval=${interval}/year=2024/month=02`)
    const years = ['1d', '7d'].map((interval) => `prices/interval=${interval}/year=2024`)
    expect(keys.sort()).toEqual([...months, ...years].sort())
    const changed = (await store.partitionsOf('prices')).filter(({ path }) => written.includes(path))
    // February is over, and the year is not.
    for (const { path, keys: of, correctedAt } of changed)
      expect(correctedAt !== null, path).toBe(of.month !== undefined)
    // Readers of the older catalog still find its files.
    for (const { path } of before.datasets.flatMap(({ partitions }) => partitions))
      expect((await stat(join(store.folder, path))).isFile()).toBe(true)
  })

  it('keeps the files beside the data that an older catalog names, and their newest copies', async () => {
    const before = await store.catalogOf()
    await storePrice(3, 91)
    store.clock.at += 60_000
    await store.run()
    const after = await store.catalogOf()
    const target = openFolder(store.database.writer, store.folder)
    const names = ['README.md', 'clickhouse.sql', 'croissant.json', 'load.sql']
    for (const { files } of [before, after]) {
      expect(files.map(({ path }) => path.replace(/-[0-9a-f]{16}/, '')).sort()).toEqual(names)
      for (const { path, ...facts } of files) expect([path, await target.readFacts(path)]).toEqual([path, facts])
    }
    // The README has no names of files.
    const same = before.files.filter(({ path }) => after.files.some((one) => one.path === path))
    expect(same.filter(({ path }) => !path.startsWith('README'))).toEqual([])
    for (const { path, sha256 } of after.files)
      expect((await target.readFacts(path.replace(/-[0-9a-f]{16}/, '')))?.sha256).toBe(sha256)
  })

  it.each(['prices', 'treasury', 'proposals'])(
    'replaces a file of a month by the file of its year, and keeps it for readers of the older catalog: %s',
    async (dataset) => {
      const catalog = await store.catalogOf()
      const partitions = catalog.datasets.find(({ name }) => name === dataset)?.partitions ?? []
      const at = partitions.findIndex(({ path, keys }) => path.includes('year=2024/') && keys.month === undefined)
      const yearly = partitions[at] as (typeof partitions)[number]
      const path = yearly.path.replace('year=2024/', 'year=2024/month=03/')
      await mkdir(dirname(join(store.folder, path)))
      await rename(join(store.folder, yearly.path), join(store.folder, path))
      partitions[at] = { ...yearly, path, keys: { ...yearly.keys, month: '03' } }
      await writeFile(join(store.folder, 'catalog.json'), JSON.stringify(catalog))
      store.clock.at += 60_000
      expect((await store.run()).written).toEqual([yearly.path])
      expect((await store.catalogOf()).replaced.map((one) => one.path)).toContain(path)
      expect((await stat(join(store.folder, path))).isFile()).toBe(true)
      expect(await store.faultsOf()).toEqual([])
    },
  )

  it('removes replaced files after the days for which they stay, and never the files of others', async () => {
    const { replaced } = await store.catalogOf()
    expect(replaced.length).toBeGreaterThan(5)
    expect(replaced.some(({ path }) => path.startsWith('load-'))).toBe(true)
    await writeFile(join(store.folder, 'mine.parquet'), 'mine')
    store.clock.at += 8 * 86_400_000
    await store.run()
    expect((await store.catalogOf()).replaced).toEqual([])
    const there = Object.keys(await store.readTimes())
    expect(there.filter((path) => replaced.some((one) => path.endsWith(one.path)))).toEqual([])
    expect(there).toContain(join(store.folder, 'mine.parquet'))
  })

  it('removes what a killed run left unfinished', async () => {
    const unfinished = join(store.folder, 'tokens', '.part-0123456789abcdef.parquet.unfinished')
    await writeFile(unfinished, 'PAR1')
    await store.run()
    await expect(stat(unfinished)).rejects.toThrow('ENOENT')
  })

  describe('that loses its lock while another one publishes a correction', () => {
    /**
     * A database that does not see the end of the lock's statement, like that of a frozen process. `inside` runs within the
     * first data file.
     */
    const unaware = (inside: () => Promise<void>): Database => {
      let files = 0
      return {
        ...store.database.writer,
        stream: async (statement) => {
          const stream = await store.database.writer.stream(statement)
          if (statement.name !== 'take lock') {
            files += 1
            return files === 1 ? Readable.from(pausing(stream, inside)) : stream
          }
          const seen = new PassThrough()
          stream.once('data', (chunk) => seen.write(chunk))
          seen.once('close', () => stream.destroy())
          return seen
        },
      }
    }
    async function* pausing(stream: Readable, inside: () => Promise<void>) {
      let at = 0
      for await (const chunk of stream as AsyncIterable<Buffer>) {
        const half = Math.ceil(chunk.length / 2)
        yield chunk.subarray(0, half)
        if (at === 0) await inside()
        at += 1
        yield chunk.subarray(half)
      }
    }
    const killLock = () =>
      store.database.writer.command({
        name: 'kill',
        sql: 'KILL QUERY WHERE query_id = {id: String} SYNC',
        params: { id: `publish ${store.database.writer.name}` },
      })

    it.each([
      ['a data file', 92, 92],
      ['the catalog', 93, 94],
      ['the removal of files', 95, 96],
    ] as const)('stops at %s and leaves the publication of the other one', async (step, price, corrected) => {
      await storePrice(3, price)
      const target = openFolder(store.database.writer, store.folder)
      let other: Catalog | undefined
      const publishOther = async () => {
        await killLock()
        await storePrice(3, corrected)
        store.clock.at += 60_000
        await store.run()
        other = await store.catalogOf()
      }
      const during = (one: typeof step) => (one === step ? publishOther() : undefined)
      const db = unaware(async () => during('a data file'))
      const folderOfFrozen = openFolder(db, store.folder)
      const frozen: Target = {
        ...folderOfFrozen,
        readText: async (path) => {
          const found = await target.readText(path)
          if (path === 'README.md') await during('the catalog')
          return found
        },
        listData: async (folders) => {
          await during('the removal of files')
          return target.listData(folders)
        },
      }
      store.clock.at += 60_000
      await expect(store.run({ db, target: frozen })).rejects.toThrow(/the lock .* was lost/)
      expect(other).toBeDefined()
      expect(await store.catalogOf()).toEqual(other)
      expect(await store.faultsOf()).toEqual([])
      expect(await readPrice(3)).toBe(corrected)
    })
  })

  it('publishes once a day for the scheduler', async () => {
    const options = {
      db: store.database.writer,
      config: store.config,
      registry: store.database.registry,
      log: silent,
      now: () => store.clock.at,
    }
    const { signal } = new AbortController()
    expect(await publishDaily(options, store.folder, signal)).toBe(true)
    expect(await publishDaily(options, store.folder, signal)).toBe(false)
    store.clock.at += 86_400_000
    expect(await publishDaily(options, store.folder, signal)).toBe(true)
  })
})

describe('verify', () => {
  it('finds a flipped byte, a missing file and a wrong row count, and the next run repairs what was deleted', async () => {
    const partitions = await Promise.all(['treasury', 'fees', 'votes'].map((name) => store.partitionsOf(name)))
    const paths = partitions.map(([first]) => first?.path)
    const [flipped = '', missing = '', counted = ''] = paths
    const file = await open(join(store.folder, flipped), 'r+')
    const { buffer } = await file.read(Buffer.alloc(1), 0, 1, 100)
    await file.write(Buffer.from([(buffer[0] ?? 0) ^ 1]), 0, 1, 100)
    await file.close()
    await rm(join(store.folder, missing))
    const full = await readFile(join(store.folder, 'catalog.json'), 'utf8')
    const catalog = JSON.parse(full) as Catalog
    for (const { partitions } of catalog.datasets) for (const one of partitions) if (one.path === counted) one.rows += 1
    await writeFile(join(store.folder, 'catalog.json'), JSON.stringify(catalog))
    const faults = await store.faultsOf()
    expect(faults).toHaveLength(3)
    expect(faults).toContainEqual(expect.stringMatching(`^${flipped}: SHA-256`))
    expect(faults).toContain(`${missing}: missing`)
    expect(faults).toContainEqual(expect.stringMatching(`^${counted}: \\d+ rows, the catalog has`))
    await writeFile(join(store.folder, 'catalog.json'), full)
    await rm(join(store.folder, flipped))
    const { written } = await store.run()
    expect([...written].sort()).toEqual([flipped, missing].sort())
    expect(await store.faultsOf()).toEqual([])
  })

  it('names the folder without a publication', async () => {
    const faults = verify(openFolder(undefined, join(store.root, 'nothing')))
    await expect(faults.next()).rejects.toThrow(/nothing: no catalog.json there/)
  })
})

describe('npm run publish', () => {
  const start = (...args: string[]) =>
    spawn(process.execPath, [...toProgram(join(import.meta.dirname, '../../workers/publish/main.ts')), ...args], {
      env: { ...process.env, ...toStoreSettings(store.config) },
    })
  const run = async (...args: string[]) => {
    const child = start(...args)
    const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
    return { code, stdout, stderr }
  }

  it('leaves no catalog when it is killed, publishes when it is repeated, and exits with 1 for a missing file', async () => {
    const to = join(store.root, 'killed')
    const killed = start('--to', to)
    await once(killed.stderr, 'data')
    killed.kill('SIGKILL')
    await once(killed, 'exit')
    await expect(stat(join(to, 'catalog.json'))).rejects.toThrow('ENOENT')
    // The lock ends with the connection of the killed process, which the database notices a moment later.
    await expect.poll(async () => (await run('--to', to)).code).toBe(0)
    expect(await run('verify', '--from', to)).toMatchObject({ code: 0, stdout: expect.stringMatching(/every file/) })
    const [tokens] = await store.partitionsOf('tokens')
    await rm(join(to, tokens?.path ?? ''))
    expect(await run('verify', '--from', to)).toMatchObject({ code: 1, stdout: `${tokens?.path}: missing\n` })
  })

  it('names each invalid option', async () => {
    expect(await run('--to', store.root, '--only', 'nothing')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/--only: there is no dataset "nothing"/),
    })
  })
})
