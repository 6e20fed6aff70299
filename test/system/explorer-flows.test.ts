import type { Page, Route } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { findBarriers, hasBrowser, isInView } from '../support/browser.ts'
import { type Answers, ID, NOW, serveExplorer, toPrepare } from '../support/explorer-page.ts'

const TEXT = '2.5 years: everything without SMP ($5.00M) divided by gross spending of the last 365 days ($2.00M).'

const toSum = (recordedAt: string, kind: 'income' | 'spending', usd: number) => ({
  ...{ recordedAt, kind, symbol: null, contractAddress: null, chain: null },
  ...{ inQuantity: null, outQuantity: null, netQuantity: null, unexplainedQuantity: null },
  ...(kind === 'income' ? { inUsd: usd, outUsd: 0, netUsd: usd } : { inUsd: 0, outUsd: usd, netUsd: -usd }),
  ...{ transfers: 3, transfersWithoutPrice: 0 },
})

const toPayment = (at: number) => ({
  ...{ _id: `${at}`.padStart(24, '0'), dao: ID, recordedAt: '2024-02-01T00:00:00.000Z', chain: ID },
  ...{ transactionHash: `0x${'1'.repeat(64)}`, wallet: `0x${'2'.repeat(40)}`, direction: 'out', leg: null },
  ...{ symbol: 'USDC', contractAddress: `0x${'3'.repeat(40)}`, quantity: 1e6 / at, priceUsd: 1, valueUsd: 1e6 / at },
  ...{ counterparty: `0x${'4'.repeat(40)}`, counterpartyLabel: `Payee ${at}`, kind: 'spending', category: null },
  ...{ rule: 'outflow', proposal: null, swapGroup: null },
})

const DAO = {
  ...{ _id: ID, name: 'Sample', description: 'A sample.', token: null, category: [], website: null, twitter: null },
  ...{ discord: null, telegram: null, whitepaper: null, tokenomics: null, snapshotName: null },
}

const ANSWERS: Answers = {
  stream: (route: Route) => route.continue(),
  status: { mode: 'live', upstream: 'Live providers.', datasets: [] },
  daos: [DAO],
  chains: [{ _id: ID, name: 'Ethereum', chainId: 1 }],
  'daos/treasury/runway': [
    {
      ...{ _id: ID, name: 'Sample', recordedAt: '2024-03-10T00:00:00.000Z', years: 2.5, reason: null, text: TEXT },
      assets: { definition: 'withoutOwnToken', valueUsd: 5e6, stablecoinUsd: 5e6, otherUsd: 0, ownTokenUsd: 1e6 },
      burn: {
        ...{ definition: 'gross', window: 365, from: '2023-03-10T00:00:00.000Z', to: '2024-03-09T00:00:00.000Z' },
        ...{ inUsd: 1e6, outUsd: 2e6, netUsd: -1e6, perYearUsd: 2e6, transfers: 9, transfersWithoutPrice: 0 },
      },
    },
  ],
  'daos/treasury/flows': Array.from({ length: 10 }, (_, at) => toPayment(at + 1)),
  'daos/treasury/flows/historic': ['2024-01', '2024-02', '2024-03'].flatMap((month, at) => [
    toSum(`${month}-01T00:00:00.000Z`, 'income', 1e5 * (at + 1)),
    toSum(`${month}-01T00:00:00.000Z`, 'spending', 2e5),
  ]),
}
const prepare = toPrepare(ANSWERS)
const TITLE = 'Income and spending by month'

describe.skipIf(!hasBrowser)('income and spending on the page', () => {
  const explorer = serveExplorer()
  const open = (path: string, viewport?: { width: number; height: number }) =>
    explorer.open(path, { now: NOW, prepare, ...(viewport === undefined ? {} : { viewport }) })
  const region = (page: Page, name: string) => page.getByRole('region', { name, exact: true })

  it('are in the report of a DAO, with the largest payments and the runway and its definition', async () => {
    const { page, wrong, close } = await open(`/daos/${ID}?tab=report`)
    await region(page, TITLE).locator('.chart[data-drawn]').waitFor()
    await region(page, 'Runway').getByText(TEXT).waitFor()
    const payments = region(page, 'Largest payments').locator('tbody tr')
    expect(await payments.count()).toBe(10)
    expect(await payments.first().textContent()).toContain('Payee 1')
    expect(wrong).toEqual([])
    await close()
  })

  it('have the receiver and the quantity of a payment on a small phone', async () => {
    const { page, close } = await open(`/daos/${ID}?tab=report`, { width: 320, height: 640 })
    const table = region(page, 'Table: Largest payments')
    for (const text of ['to Payee 1', '1.00M USDC', '$1.00M']) expect(await isInView(table, text), text).toBe(true)
    await close()
  })

  it('are a chart for another site, whose HTML is in the card', async () => {
    const { page, close } = await open(`/daos/${ID}?tab=report`)
    await page.getByText(`Embed: ${TITLE}`).click()
    const html = (await page.locator('code', { hasText: 'metric=flows' }).textContent()) ?? ''
    const source = new URL(/src="([^"]+)"/.exec(html)?.[1]?.replaceAll('&amp;', '&') ?? '')
    expect(source.pathname).toBe(`/embed/daos/${ID}`)
    await close()
    const frame = await open(source.pathname + source.search, { width: 640, height: 420 })
    await frame.page.getByRole('heading', { name: `Sample: ${TITLE.toLowerCase()}` }).waitFor()
    await frame.page.locator('.chart[data-drawn]').waitFor()
    expect(await frame.page.locator('.chart').count()).toBe(1)
    expect(await findBarriers(frame.page)).toEqual([])
    expect(frame.wrong).toEqual([])
    await frame.close()
  })
})
