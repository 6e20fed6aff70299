import { describe, expect, it } from 'vitest'
import { findBarriers, hasBrowser, isWide } from '../support/browser.ts'
import { region, serveDemo, settled } from '../support/explorer-page.ts'

const [UNI, AAVE] = ['a00a15074c647764fac27d6c', 'd9def830e1a4b8b43c928d43']

interface Report {
  readonly totalReturn: number
  readonly rebalances: readonly { readonly members: readonly { readonly token: string; readonly weight: number }[] }[]
}

describe.skipIf(!hasBrowser)('page of baskets', () => {
  const demo = serveDemo()
  const { open } = demo
  const readReport = (query: string) => demo.get<Report>(`/data/baskets/report?${query}`)

  it('builds a basket from searched tokens with shares, and its address holds all of it', async () => {
    const { page, wrong, close } = await open('/baskets')
    await region(page, 'Statistics').waitFor()
    await page.getByRole('button', { name: 'Own choice' }).click()
    await page.getByText('Add a token: type its name or symbol above.').waitFor()
    for (const [text, id] of [
      ['uniswap', UNI],
      ['aave', AAVE],
    ] as const) {
      await page.getByLabel('Add a token').fill(text)
      await page.keyboard.press('Enter')
      await page.waitForURL((url) => url.searchParams.get('of')?.includes(id) === true)
    }
    await page.getByLabel('Weights').selectOption('Fixed')
    await page.getByLabel('Share of UNI').fill('3')
    await page.keyboard.press('Tab')
    await page.waitForURL((url) => url.searchParams.get('of') === `${UNI}:3,${AAVE}:1`)
    await settled(page)
    const holdings = region(page, /^Holdings from/)
    await expect
      .poll(() => holdings.locator('tbody tr').allTextContents())
      .toEqual([expect.stringMatching(/^UNI75\.00 %/), expect.stringMatching(/^AAVE25\.00 %/)])
    await page.getByText('Fixed weights: 2 named tokens, rebalanced monthly, without costs.').waitFor()
    const address = page.url()
    await page.goto(demo.toUrl('/'))
    await page.goto(address)
    await expect.poll(() => holdings.locator('tbody tr').count()).toBe(2)
    expect(await page.getByLabel('Share of UNI').inputValue()).toBe('3')
    expect(wrong).toEqual([])
    await close()
  })

  it('shows the statistics and holdings of the API, beside the Index, with a CSV for each table', async () => {
    const rule = 'top=3&weights=marketCap&rebalance=monthly&costBps=30'
    const { totalReturn, rebalances } = await readReport(rule)
    const { page, close } = await open(`/baskets?${rule}`)
    const stat = region(page, 'Statistics')
      .locator('div', { hasText: /^Total return/ })
      .locator('data')
    await stat.first().waitFor()
    expect(Number(await stat.first().getAttribute('value'))).toBeCloseTo(totalReturn * 100, 9)
    const shown = await region(page, /^Holdings from/)
      .locator('tbody td:nth-child(2) data')
      .evaluateAll((cells) => cells.map((cell) => Number(cell.getAttribute('value'))))
    const weights = rebalances.at(-1)?.members.map(({ weight }) => weight) ?? []
    expect(shown).toEqual(weights.sort((a, b) => b - a))
    // The lines of the chart are requests of their own.
    await expect
      .poll(() => region(page, 'Basket and Index').locator('.key li').allTextContents())
      .toEqual([expect.stringContaining('Basket'), expect.stringContaining('Index')])
    for (const [card, columns] of [
      [/^Holdings from/, 'at,scheduledAt,token,symbol,weight,units,price,entered'],
      ['Rebalances', 'at,scheduledAt,decidedWith,members,turnover,cost,nav'],
    ] as const) {
      await region(page, card).getByText('Open as').click()
      const csv = await region(page, card).getByRole('link', { name: 'CSV', exact: true }).getAttribute('href')
      const text = await (await fetch(csv ?? '')).text()
      expect(text.split('\n')[0]?.replaceAll(/["\uFEFF]/g, '')).toBe(columns)
    }
    await close()
  })

  it('adds and removes the line of a single token', async () => {
    const { page, close } = await open(`/baskets?by=named&of=${UNI},${AAVE}`)
    const card = region(page, 'Basket and Index')
    await card.getByLabel('Compare with').selectOption('UNI')
    await expect.poll(() => card.locator('.key li').count()).toBe(3)
    expect(new URL(page.url()).searchParams.get('with')).toBe(UNI)
    await card.getByRole('button', { name: 'Remove UNI' }).click()
    await expect.poll(() => card.locator('.key li').count()).toBe(2)
    await close()
  })

  it('shows an error of the API beside its control, until the value is mended', async () => {
    const { page, close } = await open('/baskets')
    await region(page, 'Statistics').waitFor()
    const cost = page.getByLabel('Cost, basis points')
    await cost.fill('5000')
    await cost.press('Enter')
    await page.locator('#about-costBps', { hasText: 'must be a whole number from 0 to 1000' }).waitFor()
    expect(await cost.getAttribute('aria-invalid')).toBe('true')
    expect(await cost.getAttribute('aria-describedby')).toBe('about-costBps')
    expect(await region(page, 'Statistics').count()).toBe(0)
    expect(await findBarriers(page)).toEqual([])
    await cost.fill('30')
    await cost.press('Enter')
    await region(page, 'Statistics').waitFor()
    expect(await page.locator('#about-costBps').count()).toBe(0)
    await page.getByText('at a cost of 30 basis points').waitFor()
    await page.getByRole('button', { name: 'Own choice' }).click()
    await page.goto(demo.toUrl('/baskets?of=NOSUCHTOKEN'))
    await page.getByRole('alert').filter({ hasText: 'There is no token with the id or symbol "nosuchtoken"' }).waitFor()
    await close()
  })

  it('fits a small phone, and prints the rule as a sentence without its form', async () => {
    const { page, close } = await open(`/baskets?by=named&of=${UNI}:1,${AAVE}:1&weights=fixed`, {
      ...{ screen: 'small phone', scheme: 'dark' },
    })
    await region(page, 'Rebalances').waitFor()
    await settled(page)
    expect(await isWide(page)).toBe(false)
    expect(await findBarriers(page)).toEqual([])
    await page.emulateMedia({ media: 'print' })
    expect(await page.getByLabel('Weights').isVisible()).toBe(false)
    expect(await page.getByText('Fixed weights: 2 named tokens').isVisible()).toBe(true)
    await close()
  })

  it('shows the curve alone on another site', async () => {
    const { page, wrong, close } = await open('/embed/baskets?top=3&weights=equal&theme=dark')
    await page.locator('.chart[data-drawn]').waitFor()
    expect(await page.getByRole('navigation').count()).toBe(0)
    expect(await page.locator('.key li').count()).toBe(2)
    expect(await findBarriers(page)).toEqual([])
    expect(wrong).toEqual([])
    await close()
  })
})
