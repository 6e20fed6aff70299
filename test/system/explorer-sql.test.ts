import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { asyncBufferFromFile, parquetMetadataAsync } from 'hyparquet'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Catalog, QUESTIONS } from '../../web/sql/views.ts'
import { publish } from '../../workers/publish/publish.ts'
import { openFolder } from '../../workers/publish/target.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { findBarriers, hasBrowser, isWide, startBrowser, type TestBrowser } from '../support/browser.ts'
import { createTestConfig } from '../support/database.ts'
import { storeEveryDataset } from '../support/every-dataset.ts'
import { storeQuotes } from '../support/quotes.ts'
import { silent } from '../support/silent.ts'

const NOW = Date.parse('2024-03-03T12:02:30Z')

describe.skipIf(!hasBrowser)('SQL page in a browser', () => {
  const root = mkdtempSync(join(tmpdir(), 'dao-data-sql-'))
  const folder = join(root, 'published')
  const config = createTestConfig({ PUBLISHED_FOLDER: folder })
  let database: Awaited<ReturnType<typeof createApiDatabase>>
  let api: TestApi
  let browser: TestBrowser
  beforeAll(async () => {
    database = await createApiDatabase(config)
    await storeEveryDataset(database.writer, database.registry, NOW)
    const quotes = Array.from({ length: 8 }, (_, step) => ({
      ...{ token: priced().key, at: NOW - 3 * 86_400_000 + step * 10 * 3_600_000, price: 1.25 + step / 3 },
    }))
    await storeQuotes(database.writer, quotes)
    await storeQuotes(database.writer, january())
    await database.writer.insert({ table: 'governance_in', rows: [titled()] })
    await publish({
      ...{ db: database.writer, registry: database.registry, target: openFolder(database.writer, folder) },
      ...{ keepDays: 7, publicUrl: 'https://data.example', log: silent, now: () => NOW },
    })
    api = await startApi({ config, ...database, changeFeed: createHandFeed(), now: () => NOW })
    browser = await startBrowser()
  })
  afterAll(async () => {
    await browser?.close()
    await api?.close()
    await database?.drop()
    await rm(root, { recursive: true, force: true })
  })

  /** A month of three other tokens, whose file is so large that only parts of it are read. */
  const january = () =>
    database.registry.tokens
      .filter(({ live, key }) => live && key !== priced().key)
      .slice(0, 3)
      .flatMap(({ key: token }, nth) =>
        Array.from({ length: 8_000 }, (_, step) => ({
          ...{ token, at: Date.parse('2024-01-01') + step * 300_000, price: nth + Math.exp(Math.sin(step * 7.1)) },
        })),
      )
  const readGroups = async (start: string) => {
    const catalog = (await (await fetch(`${api.url}/published/catalog.json`)).json()) as Catalog
    const file = catalog.datasets.flatMap(({ partitions }) => partitions).find(({ path }) => path.startsWith(start))
    const metadata = await parquetMetadataAsync(await asyncBufferFromFile(join(folder, file?.path ?? '')))
    return { groups: metadata.row_groups.length, bytes: file?.bytes ?? 0 }
  }
  const priced = () => {
    const token = database.registry.tokens.find(({ live }) => live)
    if (token === undefined) throw new Error('the registry has no live token')
    return token
  }
  const voted = () => {
    const dao = database.registry.daos.find(({ snapshotSpace }) => snapshotSpace !== null)
    if (dao === undefined) throw new Error('the registry has no DAO with a space')
    return dao
  }
  /** A proposal with a title of characters of one to four bytes. */
  const titled = () => ({
    ...{ dao: voted().key, space: voted().snapshotSpace, kind: 'proposal', proposal: '0xtitled', address: '0x1' },
    ...{
      at: '2024-03-01T00:00:00Z',
      title: 'Größe der Börse: 資金 𝔘',
      voting_type: 'basic',
      choices: ['Ja'],
      url: null,
    },
    ...{ starts_at: '2024-03-01T00:00:00Z', ends_at: '2024-03-02T00:00:00Z' },
  })
  const open = (path: string, options: Parameters<TestBrowser['open']>[1] = {}) => browser.open(api.url + path, options)
  const run = async (page: Page, sql: string) => {
    await page.getByRole('textbox', { name: 'SQL' }).fill(sql)
    await page.keyboard.press('Control+Enter')
  }
  /** Waits for the end of a query, and returns its errors. */
  const errorsOf = async (page: Page) => {
    await page.getByRole('alert').or(resultOf(page)).first().waitFor()
    return page.getByRole('alert').allTextContents()
  }
  const resultOf = (page: Page) => page.getByRole('region', { name: 'Result', exact: true })
  const cellsOf = (page: Page) =>
    resultOf(page)
      .locator('tbody tr')
      .evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent ?? '')))

  it('returns the prices of the API, as a table, a chart and CSV', async () => {
    const { page, wrong, close } = await open('/sql', { acceptDownloads: true })
    const { id } = priced()
    await run(
      page,
      `SELECT timestamp, price FROM prices WHERE interval = '1h' AND token_id = '${id}' ORDER BY timestamp`,
    )
    expect(await errorsOf(page)).toEqual([])
    const answer = await fetch(`${api.url}/data/tokens/historic-financial?id=${id}&interval=1h&start=2024-02-01`)
    const { data } = (await answer.json()) as { data: { timestamp: string; quote: { USD: { price: number } } }[] }
    const expected = data.map(({ timestamp, quote }) => [timestamp, String(quote.USD.price)])
    expect(expected.length).toBeGreaterThan(1)
    expect(await cellsOf(page)).toEqual(expected)
    await resultOf(page).locator('.chart[data-drawn]').waitFor()
    const downloading = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Download CSV' }).click()
    const csv = String(await buffer(await (await downloading).createReadStream()))
    const lines = ['"timestamp","price"', ...expected.map(([at, price]) => `"${at}",${price}`)]
    expect(csv).toBe(`\ufeff${lines.map((line) => `${line}\n`).join('')}`)
    expect(wrong).toEqual([])
    await close()
  })

  it('returns texts of every script, and unknown ones', async () => {
    const { page, close } = await open('/sql')
    const { id } = voted()
    const get = async <T>(path: string) =>
      (await (await fetch(`${api.url}/data/daos/governance/${path}&id=${id}`)).json()) as T
    await run(page, `SELECT title FROM proposals WHERE dao_id = '${id}' AND source = 'snapshot'`)
    expect(await errorsOf(page)).toEqual([])
    const titles = (await get<{ title: string }[]>('proposals?fields=title')).map(({ title }) => title)
    expect(titles).toContain(titled().title)
    expect((await cellsOf(page)).flat().sort()).toEqual(titles.sort())
    await run(
      page,
      `SELECT count(choice), count(*) - count(choice) FROM votes WHERE dao_id = '${id}' AND source = 'snapshot'`,
    )
    const choices = await get<{ choice: unknown }[]>('votes?fields=choice')
    const unknown = choices.filter(({ choice }) => choice === null).length
    expect(unknown).toBeGreaterThan(0)
    await expect.poll(() => cellsOf(page)).toEqual([[String(choices.length - unknown), String(unknown)]])
    await close()
  })

  it('runs every example', async () => {
    const { page, wrong, close } = await open('/sql')
    const select = page.getByRole('combobox', { name: 'Example' })
    for (const { title, sql } of QUESTIONS) {
      await select.selectOption(title)
      await page.getByRole('button', { name: /^Run/ }).click()
      await expect.poll(() => new URL(page.url()).searchParams.get('q')).toBe(sql)
      await page.getByRole('button', { name: /^Run/ }).and(page.locator(':enabled')).waitFor()
      expect(await page.getByRole('alert').allTextContents(), title).toEqual([])
      expect(await errorsOf(page)).toEqual([])
    }
    expect(wrong).toEqual([])
    await close()
  })

  it('loads only the files that a query needs', async () => {
    const { page, close } = await open('/sql')
    const loaded: string[] = []
    page.on('request', (request) => request.url().endsWith('.parquet') && loaded.push(new URL(request.url()).pathname))
    const earliest = async (condition: string, expected: string) => {
      await run(page, `SELECT min(timestamp)::DATE::VARCHAR FROM prices WHERE interval = '4h' ${condition}`)
      await expect.poll(() => cellsOf(page)).toEqual([[expected]])
      expect(await errorsOf(page)).toEqual([])
    }
    await earliest("AND timestamp >= '2024-03-01'", '2024-03-01')
    const month = (number: string) =>
      expect.stringContaining(`/published/prices/interval=4h/year=2024/month=${number}/`)
    expect(loaded).toEqual([month('03')])
    await earliest('', '2024-01-01')
    expect([...loaded].sort()).toEqual([month('01'), month('02'), month('03')])
    await close()
  })

  it('reads part of one file for a query whose only clause is LIMIT', async () => {
    const { page, close } = await open('/sql')
    const loaded: string[] = []
    page.on('request', (request) => request.url().endsWith('.parquet') && loaded.push(new URL(request.url()).pathname))
    // Loads a file without its other columns: its rows must not be in the next result.
    await run(page, "SELECT max(price) > 0 FROM prices WHERE interval = '7d'")
    await expect.poll(() => cellsOf(page)).toEqual([['true']])
    loaded.length = 0
    await run(page, 'SELECT * FROM prices LIMIT 10')
    await expect.poll(async () => (await cellsOf(page)).length).toBe(10)
    expect(await errorsOf(page)).toEqual([])
    expect((await cellsOf(page)).every(([token]) => token !== undefined && /^[0-9a-f]{24}$/.test(token))).toBe(true)
    expect(new Set(loaded).size).toBe(1)
    const ranges: string[] = []
    page.on('request', (request) => ranges.push(...[request.headers().range ?? []].flat()))
    await run(page, "SELECT * FROM prices WHERE interval = '5m' AND month = 1 LIMIT 10 OFFSET 5")
    await expect.poll(async () => (await cellsOf(page)).flat()).toContain('5m')
    const { groups, bytes } = await readGroups('prices/interval=5m/year=2024/month=01/')
    expect(groups).toBe(2)
    const lengths = ranges
      .map((range) => /^bytes=(\d+)-(\d+)$/.exec(range) ?? [])
      .map(([, from, to]) => Number(to) - Number(from))
    expect(lengths.reduce((sum, one) => sum + one, 0)).toBeLessThan(bytes)
    await run(page, "SELECT count(*) FROM prices WHERE interval = '5m' AND month = 1")
    await expect.poll(() => cellsOf(page)).toEqual([[String(january().length)]])
    await close()
  })

  it('reads the rows of the selected tokens from a large file', async () => {
    const { page, close } = await open('/sql')
    const ranges: (string | undefined)[] = []
    page.on('request', (request) => request.url().endsWith('.parquet') && ranges.push(request.headers().range))
    const quotes = january()
    const tokens = [...new Set(quotes.map(({ token }) => token))]
    const idOf = (token: number | undefined) => database.registry.tokens.find(({ key }) => key === token)?.id ?? ''
    const [one = '', two = ''] = tokens.map(idOf)
    const sumOf = (ids: readonly string[]) => {
      const own = quotes.filter(({ token }) => ids.includes(idOf(token)))
      return [String(own.length), own.reduce((sum, { price }) => sum + price, 0).toFixed(3)]
    }
    const read = async (condition: string) => {
      await run(
        page,
        `SELECT count(*), printf('%.3f', sum(price)) FROM prices WHERE interval = '5m' AND month = 1 ${condition}`,
      )
      expect(await errorsOf(page)).toEqual([])
      return (await cellsOf(page))[0]
    }
    expect(await read(`AND token_id = '${one}'`)).toEqual(sumOf([one]))
    expect(await read(`AND token_id = '${two}'`)).toEqual(sumOf([two]))
    expect(await read(`AND token_id IN ('${one}', '${two}')`)).toEqual(sumOf([one, two]))
    expect(await read(`AND (token_id = '${one}' OR token_id > '${two}')`)).toEqual(
      sumOf(tokens.map(idOf).filter((id) => id === one || id > two)),
    )
    expect(await read('')).toEqual(sumOf(tokens.map(idOf)))
    expect(ranges.length).toBeGreaterThan(1)
    expect(ranges.filter((range) => range === undefined)).toEqual([])
    await close()
  })

  it('counts the rows of all files, without a condition', async () => {
    const { page, close } = await open('/sql')
    await run(
      page,
      "SELECT interval, month, count(*) FROM prices WHERE interval IN ('5m', '4h') GROUP BY ALL ORDER BY ALL",
    )
    expect(await errorsOf(page)).toEqual([])
    const catalog = (await (await fetch(`${api.url}/published/catalog.json`)).json()) as Catalog
    const files = catalog.datasets.find(({ name }) => name === 'prices')?.partitions ?? []
    const expected = files
      .filter(({ keys: { interval = '' } }) => ['5m', '4h'].includes(interval))
      .map(({ keys, rows }) => [keys.interval, String(Number(keys.month)), String(rows)])
    expect(await cellsOf(page)).toEqual(expected.sort())
    await run(page, "SELECT month, count(*) FROM prices WHERE interval = '1d' AND month < 3 GROUP BY ALL ORDER BY ALL")
    // The file of the year has no month in its path.
    await expect.poll(async () => (await cellsOf(page))[0]).toEqual(['1', String(3 * 28)])
    expect(files.filter(({ keys }) => keys.interval === '1d').map(({ keys }) => keys)).toEqual([
      { interval: '1d', year: '2024' },
    ])
    await close()
  })

  it('cancels a query and runs the next one', async () => {
    const { page, close } = await open('/sql')
    await run(page, 'SELECT count(*) FROM range(1000000000000) AS numbers(n) WHERE n % 7 = 3')
    await page.getByText('Running …').waitFor()
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.getByText('Cancelled.').waitFor()
    await run(page, 'SELECT 1 AS one')
    expect(await errorsOf(page)).toEqual([])
    expect(await cellsOf(page)).toEqual([['1']])
    await close()
  })

  it('reads a part of a large result', async () => {
    const { page, close } = await open('/sql')
    await run(page, 'SELECT n FROM range(300000) AS numbers(n)')
    expect(await errorsOf(page)).toEqual([])
    await resultOf(page).getByText('The first 100,000 rows').waitFor()
    await run(page, 'SELECT 2 AS two')
    await expect.poll(() => cellsOf(page)).toEqual([['2']])
    await close()
  })

  it('shows the query of a link, and errors of DuckDB', async () => {
    const q = 'SELECT nothing FROM tokens'
    const { page, close } = await open(`/sql?${new URLSearchParams({ q })}`)
    expect(await page.getByRole('textbox', { name: 'SQL' }).inputValue()).toBe(q)
    await page.getByRole('button', { name: /^Run/ }).click()
    const alert = page.getByRole('alert')
    await alert.waitFor()
    expect(await alert.textContent()).toMatch(/Binder Error: Referenced column "nothing" not found/)
    await run(page, "SELECT * FROM 'https://elsewhere.example/file.parquet'")
    await expect.poll(() => alert.textContent()).toMatch(/elsewhere\.example/)
    await run(page, 'SELECT 1; SELECT 2')
    await expect.poll(() => alert.textContent()).toMatch(/one statement/)
    await close()
  })

  it.each(['desktop', 'small phone'] as const)('has no accessibility errors on a %s', async (screen) => {
    const { page, wrong, close } = await open('/sql', { screen, scheme: screen === 'desktop' ? 'light' : 'dark' })
    await page.getByText('prices', { exact: true }).click()
    await run(page, 'SELECT * FROM tokens LIMIT 50')
    expect(await errorsOf(page)).toEqual([])
    expect(await isWide(page)).toBe(false)
    expect(await findBarriers(page)).toEqual([])
    expect(wrong).toEqual([])
    await close()
  })

  it('says how to publish if nothing is published', async () => {
    const { page, close } = await open('/sql', {
      prepare: (page) => page.route('**/published/catalog.json', (route) => route.fulfill({ status: 404 })),
    })
    await page.getByText('npm run publish').waitFor()
    await close()
  })
})
