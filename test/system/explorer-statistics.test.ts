import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { findBarriers, hasBrowser } from '../support/browser.ts'
import { region, serveDemo } from '../support/explorer-page.ts'

interface Token {
  readonly _id: string
  readonly financialData: { readonly price: number; readonly percentChange24h: number | null }
}

describe.skipIf(!hasBrowser)('numbers of the page', () => {
  const demo = serveDemo()
  const { open } = demo
  const { get } = demo
  const numbersOf = async (page: Page, selector: string) =>
    (await page.locator(selector).evaluateAll((all) => all.map((one) => one.getAttribute('value')))).map(Number)

  it('has only falling tokens among the losers, and only rising ones among the gainers', async () => {
    const { page, wrong, close } = await open('/')
    for (const [title, sign] of [
      ['Top losers, 24 h', -1],
      ['Top gainers, 24 h', 1],
    ] as const) {
      await region(page, title).locator('tbody tr').first().waitFor()
      const changes = await numbersOf(page, `section[aria-label="${title}"] td:nth-child(3) data`)
      expect(changes.length, title).toBeGreaterThan(0)
      expect(changes.every((change) => Math.sign(change) === sign)).toBe(true)
      expect(changes).toEqual(changes.toSorted((a, b) => -sign * (a - b)))
    }
    expect(wrong).toEqual([])
    await close()
  })

  it('shows one value of the Index, the newest one, on each card', async () => {
    const [newest] = await get<{ valueUsd: number }[]>('/data/index/historic?interval=5m&order=desc&limit=1')
    const text = (await (async () => {
      const { page, close } = await open('/')
      const lead = region(page, 'Index').locator('.lead data').first()
      await lead.waitFor()
      expect(Number(await lead.getAttribute('value'))).toBe(newest?.valueUsd)
      const shown = await lead.textContent()
      await close()
      return shown
    })()) as string
    const { page, close } = await open('/index?range=7d')
    const heading = page.locator('.title .large data')
    await heading.waitFor()
    expect(Number(await heading.getAttribute('value'))).toBe(newest?.valueUsd)
    await region(page, 'Composition').locator('tbody tr').first().waitFor()
    const values = await numbersOf(page, 'section[aria-label="Composition"] td:nth-child(6) data')
    expect(values.reduce((sum, value) => sum + value, 0)).toBeCloseTo(newest?.valueUsd ?? 0, 9)
    await expect.poll(() => page.locator('output.point').first().textContent()).toContain(`value ${text}`)
    await close()
  })

  it('ends the chart of a token with the price in its heading', async () => {
    const [token] = await get<Token[]>('/data/tokens?name=Uniswap')
    const { page, close } = await open(`/tokens/${token?._id}`)
    const price = page.locator('.title .large data')
    await price.waitFor()
    expect(Number(await price.getAttribute('value'))).toBe(token?.financialData.price)
    const text = (await price.textContent()) ?? ''
    await expect.poll(() => page.locator('output.point').first().textContent()).toContain(`Price ${text}`)
    await close()
  })

  it('names the start of the stored trades beside sums of longer periods', async () => {
    const [token] = await get<Token[]>('/data/tokens?name=Uniswap')
    const { page, close } = await open(`/tokens/${token?._id}`)
    const table = region(page, 'Decentralized exchanges').locator('tbody tr')
    await table.getByText('30 days (since 5 May 2026)').waitFor()
    expect(await table.first().locator('td').first().textContent()).toBe('24 hours')
    await close()
  })

  it('suggests a first comparison of the largest tokens, or of the largest treasuries', async () => {
    for (const [path, list] of [
      ['/compare', '/data/tokens?sort=-financialData.marketCap&limit=3'],
      ['/compare?of=daos', '/data/daos/treasury?sort=-treasuryData.valueUsd&limit=3'],
    ] as const) {
      const largest = await get<{ _id: string }[]>(list)
      const { page, wrong, close } = await open(path)
      await page.getByRole('link', { name: /^Compare .*, / }).click()
      await page.waitForURL((url) => url.searchParams.get('ids') === largest.map(({ _id }) => _id).join(','))
      await region(page, 'Side by side').locator('tbody tr').nth(2).waitFor()
      expect(wrong).toEqual([])
      await close()
    }
  })

  it('ranks DAOs by fees, treasury and their ratio', async () => {
    const kinds = await get<{ _id: string; valueUsd: number }[]>('/data/daos/treasury/kinds?sort=-valueUsd&limit=500')
    const { page, wrong, close } = await open('/daos?about=fees')
    const card = region(page, 'Fees and treasuries')
    await card.getByRole('button', { name: 'Treasury', exact: true }).click()
    await page.waitForURL(/sort=-treasury/)
    const rows = card.locator('tbody tr')
    const shown = await rows.evaluateAll((all) => all.map((row) => row.querySelector('a')?.getAttribute('href')))
    expect(shown.slice(0, kinds.length)).toEqual(kinds.map(({ _id }) => `daos/${_id}`))
    const number = (row: number, column: number) => rows.nth(row).locator('td').nth(column).locator('data')
    await card.getByRole('button', { name: 'Fees / treasury' }).click()
    await page.waitForURL(/sort=-ratio/)
    expect(Number(await number(0, 3).getAttribute('value'))).toBeGreaterThan(0)
    expect(await findBarriers(page)).toEqual([])
    const sql = new URL(
      (await card.getByRole('link', { name: 'The same table in SQL' }).getAttribute('href')) ?? '',
      demo.toUrl('/'),
    )
    expect(sql.searchParams.get('q')).toContain('FULL JOIN earned')
    expect(wrong).toEqual([])
    await close()
  })

  it('shows contributions to the Index over the chosen period, as the API has them', async () => {
    const { page, close } = await open('/index')
    const card = region(page, 'Composition')
    await card.getByRole('button', { name: '30 d', exact: true }).click()
    await card.getByRole('columnheader', { name: 'Contribution, 30 d' }).waitFor()
    const members = await get<{ contribution: number | null }[]>('/data/index/weights?sort=-weight&days=30')
    const known = members.flatMap(({ contribution }) => (contribution === null ? [] : [contribution]))
    expect(await numbersOf(page, 'section[aria-label="Composition"] td:nth-child(3) data')).toEqual(known)
    await close()
  })
})
