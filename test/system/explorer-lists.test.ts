import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { findBarriers, hasBrowser } from '../support/browser.ts'
import { serveDemo, settled } from '../support/explorer-page.ts'

interface Token {
  readonly name: string
  readonly symbol: string
}

describe.skipIf(!hasBrowser)('lists of the explorer in a browser', () => {
  const demo = serveDemo()
  const { open } = demo
  const listTokens = (query: string) => demo.get<Token[]>(`/data/tokens?${query}`)
  const names = (page: Page) => page.locator('tbody tr td:first-child a').allTextContents()

  it('sort, filter and search by name, and keep all of it in the URL', async () => {
    const { page, close } = await open('/tokens')
    await page.getByRole('link', { name: 'Uniswap UNI' }).waitFor()
    await page.getByRole('button', { name: 'Price' }).click()
    await page.getByLabel('Category').selectOption('dex')
    await page.waitForURL('**/tokens?sort=-financialData.price&category=dex')
    await settled(page)
    const grants = await listTokens('sort=-financialData.price&category=dex&limit=100')
    const expected = grants.map(({ name, symbol }) => `${name} ${symbol}`)
    expect(expected.length).toBeGreaterThan(5)
    await expect.poll(() => names(page)).toEqual(expected)
    expect(await page.getByRole('columnheader', { name: 'Price' }).getAttribute('aria-sort')).toBe('descending')
    const shared = await open(page.url().slice(demo.toUrl('').length))
    await expect.poll(() => names(shared.page)).toEqual(expected)
    await shared.close()
    await page.getByLabel('Name').fill('unisw')
    await expect.poll(() => names(page)).toEqual(['Uniswap UNI'])
    await page.getByRole('link', { name: 'Uniswap UNI' }).click()
    await page.getByRole('heading', { level: 1, name: 'Uniswap UNI' }).waitFor()
    await page.goBack()
    await expect.poll(() => names(page)).toEqual(['Uniswap UNI'])
    await page.goBack()
    await page.waitForURL('**/tokens?sort=-financialData.price')
    expect(await page.getByLabel('Name').inputValue()).toBe('')
    await close()
  })

  it('restore the scroll position after going back, and start at the top of the next page', async () => {
    const { page, close } = await open('/tokens')
    await page.getByRole('link', { name: 'Next page' }).waitFor()
    const row = page.locator('tbody tr').nth(84).getByRole('link')
    await row.scrollIntoViewIfNeeded()
    const [name, place] = [await row.textContent(), await page.evaluate<number>('scrollY')]
    expect(place).toBeGreaterThan(1_000)
    await row.click()
    await page.getByRole('heading', { level: 1, name: String(name) }).waitFor()
    await page.goBack()
    await expect.poll(() => page.evaluate<number>('scrollY')).toBe(place)
    await page.getByRole('link', { name: 'Next page' }).click()
    await page.waitForURL('**/tokens?cursor=*')
    const table = page.getByRole('region', { name: 'Table: All tokens' })
    await expect.poll(() => table.evaluate((element) => element === element.ownerDocument.activeElement)).toBe(true)
    expect(await page.evaluate<number>('scrollY')).toBeLessThan(place)
    // Typing in the search box opens another list and keeps the focus.
    await page.getByLabel('Name').pressSequentially('unisw')
    await expect.poll(() => names(page)).toEqual(['Uniswap UNI'])
    await close()
  })

  it('show rows far from the screen by their first cell only, and print all cells', async () => {
    const { page, close } = await open('/tokens', { viewport: { width: 1440, height: 900 } })
    await page.getByRole('link', { name: 'Next page' }).waitFor()
    const rows = page.locator('tbody tr')
    const cellsOf = (row: number) => rows.nth(row).locator('td').count()
    const columns = await page.locator('thead th').count()
    await expect.poll(() => page.locator('*').count()).toBeLessThan(1_400)
    expect(await rows.count()).toBe(100)
    expect([await cellsOf(0), await cellsOf(99)]).toEqual([columns, 1])
    const heights = await rows.evaluateAll((all) => all.slice(0, -1).map((row) => row.getBoundingClientRect().height))
    expect(Math.max(...heights) - Math.min(...heights)).toBeLessThan(1)
    // The keyboard reaches a far row, which then has all cells.
    await rows.nth(99).getByRole('link').focus()
    await expect.poll(() => cellsOf(99)).toBe(columns)
    await page.evaluate('scrollTo(0, 0)')
    await expect.poll(() => cellsOf(90)).toBe(1)
    // The focused row is in use.
    expect(await cellsOf(99)).toBe(columns)
    await page.evaluate(`addEventListener('beforeprint', () => {
      globalThis.printed = document.querySelectorAll('tbody td').length
    })`)
    await page.pdf()
    expect(await page.evaluate('globalThis.printed')).toBe(100 * columns)
    await expect.poll(() => cellsOf(90)).toBe(1)
    await close()
  })

  it('show the selected columns, keep them in the URL, and open them as CSV', async () => {
    // A category with few rows: the columns are the same, and each of the many clicks renders faster.
    const { page, close } = await open('/tokens?category=dex')
    await page.getByRole('link', { name: 'Uniswap UNI' }).waitFor()
    const headings = async (of: Page) =>
      (await of.locator('thead th').allTextContents()).map((text) => text.replace(/ [↑↓]$/, ''))
    await page.getByText('Columns', { exact: true }).focus()
    await page.keyboard.press('Enter')
    const boxes = page.getByRole('group', { name: 'Columns that are shown' }).getByRole('checkbox')
    expect(await findBarriers(page)).toEqual([])
    for (const box of await boxes.all()) if (!(await box.isChecked())) await box.press('Space')
    expect(await headings(page)).toHaveLength((await boxes.count()) + 1)
    // The page sorts by every column with a sort button.
    for (const button of await page.locator('thead button').all()) {
      await button.click()
      await settled(page)
      expect(await page.getByRole('alert').count()).toBe(0)
    }
    // A click outside of the menu has closed it.
    await page.getByText('Columns', { exact: true }).focus()
    await page.keyboard.press('Enter')
    for (const box of await boxes.all()) await box.press('Space')
    expect(await headings(page)).toEqual(['Token'])
    await page.getByLabel('Contract').press('Space')
    const shared = await open(page.url().slice(demo.toUrl('').length))
    await expect.poll(() => headings(shared.page)).toEqual(['Token', 'Contract'])
    await shared.page.getByText('Open as: All tokens').click()
    const href = await shared.page.getByRole('link', { name: 'CSV', exact: true }).getAttribute('href')
    const csv = await (await fetch(href ?? '')).text()
    expect(csv.split(/\r?\n/)[0]?.replaceAll('"', '')).toBe('_id,name,symbol,contractAddress')
    await shared.close()
    const second = await open('/tokens?columns=nothing-like-it,price')
    await expect.poll(() => headings(second.page)).toEqual(['Token', 'Price'])
    await second.close()
    await close()
  })

  it('show the newest proposals of all DAOs', async () => {
    const { get } = demo
    const all = await get<{ title: string; dao: string; createdAt: string }[]>(
      '/data/daos/governance/proposals?endsBefore=2100-01-01T00:00:00Z&source=all&sort=-createdAt&limit=1000',
    )
    const { page, close } = await open('/')
    const rows = page.getByRole('region', { name: 'Table: Newest proposals' }).locator('tbody tr')
    await rows.nth(4).waitFor()
    const shown: { title: string; dao: string }[] = []
    for (const row of await rows.all()) {
      const href = await row.locator('td:nth-child(2) a').getAttribute('href')
      shown.push({
        title: (await row.locator('td a').first().textContent()) ?? '',
        dao: href?.slice('daos/'.length) ?? '',
      })
    }
    // Proposals of several DAOs may have the same time: the order among them is undefined.
    const times = shown.map(({ title, dao }) => all.find((one) => one.title === title && one.dao === dao)?.createdAt)
    const newest = all.map(({ createdAt }) => createdAt).toSorted((a, b) => b.localeCompare(a))
    expect(times).toEqual(newest.slice(0, 5))
    await close()
  })

  it('request the charts of a column when a phone shows it', async () => {
    const requested: string[] = []
    const { page, close } = await open('/tokens', {
      screen: 'phone',
      prepare: async (before) => before.on('request', (request) => requested.push(request.url())),
    })
    const charts = () => requested.filter((url) => url.includes('/charts/24h/')).length
    // The browser requests an icon and the chart of its row together.
    const icon = page.locator('tbody .mark').nth(5)
    await expect.poll(() => icon.evaluate((image) => Reflect.get(image, 'complete'))).toBe(true)
    expect(charts()).toBe(0)
    await page.getByRole('region', { name: 'Table: All tokens' }).evaluate((table) => table.scrollBy(10_000, 0))
    await expect.poll(charts).toBeGreaterThan(5)
    await close()
  })

  it('open their content as JSON, CSV and Parquet', async () => {
    const { page, close } = await open('/tokens?category=dex')
    await page.getByText('Open as: All tokens').click()
    for (const [format, type] of [
      ['JSON', 'application/json'],
      ['CSV', 'text/csv'],
      ['Parquet', 'application/vnd.apache.parquet'],
    ] as const) {
      const href = await page.getByRole('link', { name: format, exact: true }).getAttribute('href')
      const response = await fetch(href ?? '')
      expect(response.status).toBe(200)
      expect(response.headers.get('content-type')).toContain(type)
    }
    expect(await page.locator('.curl').first().textContent()).toMatch(/^curl 'http.*category=dex/)
    await close()
  })
})
