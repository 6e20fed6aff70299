import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { findBarriers, hasBrowser, isWide } from '../support/browser.ts'
import { region, serveDemo } from '../support/explorer-page.ts'

const UNI = 'a00a15074c647764fac27d6c'

interface Provenance {
  readonly provider: string | null
  readonly observedAt: string
  readonly values: Readonly<Record<string, unknown>>
  readonly answers: readonly { readonly request: string; readonly used: boolean }[]
  readonly computedFrom: readonly { readonly entity: { readonly id: string; readonly name: string } | null }[]
}

describe.skipIf(!hasBrowser)('page of where a value comes from', () => {
  const demo = serveDemo()
  const { open } = demo
  const read = (query: string) => demo.get<Provenance>(`/data/provenance?${query}`)
  /** Opens the menu of a card, and the link in it. */
  const follow = async (page: Page, card: string) => {
    await region(page, card).getByText('Open as').click()
    await region(page, card).getByRole('link', { name: 'Where from?', exact: true }).click()
    await region(page, 'Value').waitFor()
  }

  it('is linked from the holders of a token, and shows the provider and its answers', async () => {
    const { page, wrong, close } = await open(`/tokens/${UNI}?tab=holders`)
    await follow(page, 'Holders')
    const of = await read(`dataset=holders&id=${UNI}`)
    const value = region(page, 'Value')
    expect(of.answers.some(({ used }) => used)).toBe(true)
    expect(await value.textContent()).toContain(`of ${of.provider}.`)
    expect(await value.getByRole('link', { name: 'Uniswap', exact: true }).getAttribute('href')).toBe(`tokens/${UNI}`)
    expect(await value.locator('tbody tr td:first-child').allTextContents()).toEqual(Object.keys(of.values))
    const answers = region(page, 'Answers of providers')
    const requests = await answers.locator('tbody code.block').allTextContents()
    expect(requests).toEqual(of.answers.map(({ request }) => request))
    expect(await answers.locator('tbody tr td:nth-child(2)').allTextContents()).toEqual(
      of.answers.map(({ used }) => expect.stringMatching(used ? /^yes$/ : /^no: ./)),
    )
    expect(await page.title()).toBe('Where from? – dao-data')
    expect(wrong).toEqual([])
    await close()
  })

  it('leads from a sum of the front page to the values that it adds up', async () => {
    const { page, wrong, close } = await open('/')
    await follow(page, 'Market cap of DAO tokens')
    const { computedFrom } = await read('dataset=market-cap')
    const links = region(page, 'Computed from').getByRole('link').filter({ hasNotText: 'Open as' })
    expect(await links.allTextContents()).toEqual(computedFrom.map(({ entity }) => entity?.name))
    await links.first().click()
    await page.getByRole('heading', { name: 'Where from? Prices' }).waitFor()
    await region(page, 'Answers of providers').waitFor()
    const [first] = computedFrom
    await region(page, 'Value')
      .getByRole('link', { name: first?.entity?.name ?? '', exact: true })
      .waitFor()
    expect(wrong).toEqual([])
    await close()
  })

  it('shows an earlier value, and the reason if none is stored', async () => {
    const { page, close } = await open(`/provenance?dataset=prices&id=${UNI}`)
    await region(page, 'Value').waitFor()
    await page.getByLabel('Newest value until').fill('2019-01-01T00:00')
    await page.keyboard.press('Tab')
    await page.getByRole('alert').waitFor()
    expect(await page.getByRole('alert').textContent()).toContain('No value of prices is stored at 2019-01-01')
    expect(new URL(page.url()).searchParams.get('at')).toBe('2019-01-01T00:00Z')
    await close()
  })

  it('is not offered for a list of many tokens', async () => {
    const { page, close } = await open('/treasuries')
    const card = region(page, 'Treasuries by value')
    await card.getByText('Open as').click()
    expect(await card.getByRole('link', { name: 'JSON', exact: true }).count()).toBe(1)
    expect(await card.getByRole('link', { name: 'Where from?' }).count()).toBe(0)
    await close()
  })

  it('fits a small phone without accessibility errors', async () => {
    for (const query of [`dataset=holders&id=${UNI}`, 'dataset=market-cap', 'dataset=prices&id=0']) {
      const { page, close } = await open(`/provenance?${query}`, { screen: 'small phone', scheme: 'dark' })
      await page.locator('.loading').first().waitFor({ state: 'detached' })
      await page
        .getByRole(query.endsWith('=0') ? 'alert' : 'table')
        .first()
        .waitFor()
      expect(await isWide(page), query).toBe(false)
      expect(await findBarriers(page), query).toEqual([])
      await close()
    }
  })
})
