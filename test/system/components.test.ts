import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findBarriers, hasBrowser, isWide, startBrowser, type TestBrowser } from '../support/browser.ts'
import { buildGallery, openGallery } from '../support/gallery.ts'

let browser: TestBrowser
let files: Awaited<ReturnType<typeof buildGallery>>
beforeAll(async () => {
  if (!hasBrowser) return
  browser = await startBrowser()
  files = await buildGallery()
})
afterAll(() => browser?.close())

const VIEWS = [
  ['desktop', 'light'],
  ['desktop', 'dark'],
  ['small phone', 'light'],
  ['small phone', 'dark'],
] as const

describe.skipIf(!hasBrowser)('components of the page', () => {
  it.each(VIEWS)('have all states without accessibility errors on a %s in the %s theme', async (screen, scheme) => {
    const { page, wrong, close } = await openGallery(browser, files, { screen, scheme })
    const card = (name: string) => page.getByRole('region', { name, exact: true })
    expect(await card('Complete').locator('tbody tr').count()).toBe(3)
    expect(await card('Complete').getByText('not known').count()).toBe(3)
    // The text changes after some seconds, which may have passed on a busy machine.
    const loading = /^(Loading tokens…|Still loading tokens: the service is slow\.)$/
    await card('Loading').getByRole('status').getByText(loading).waitFor()
    await card('Loading after a change of the request').locator('[aria-busy=true] table').waitFor()
    await card('Empty').getByText('No tokens match.').waitFor()
    await card('Stale').getByText('stale: 1d ago').waitFor()
    const partial = card('Partial: the newest request failed')
    await partial.getByRole('alert').getByText('The database does not answer.').waitFor()
    expect(await partial.locator('tbody tr').count()).toBe(3)
    await card('Error').getByRole('button', { name: 'Try again' }).waitFor()
    await card('Not known').getByText('Not known: No provider has this token.').waitFor()
    expect(await page.locator('.chart canvas').count()).toBe(8)
    const map = card('Treemap').getByRole('list', { name: 'Treasuries by value' })
    await map.getByRole('link', { name: 'First DAO $2.10B own token 60.00 %, stablecoins 30.00 %' }).waitFor()
    await map.getByRole('link', { name: 'Parts not known $400.00M its parts are not known' }).waitFor()
    await map.getByText('12 others').waitFor()
    await card('Treemap without values').getByText('No known values.').waitFor()
    await card('Code not loaded').getByRole('button', { name: 'Load the page again' }).waitFor()
    const changes = card('Heat map').locator('.heat')
    expect(await changes.allTextContents()).toEqual(
      expect.arrayContaining(['+2.16 %', '-31.40 %', '0.00 %', '>-0.01 %', '-22.10 %']),
    )
    expect(await card('Heat map').getByText('not known').count()).toBe(1)
    await card('One point').getByText('A line needs two points, and this range has one.').waitFor()
    await card('No points').getByText('No data in this range.').waitFor()
    expect(await isWide(page)).toBe(false)
    expect(await findBarriers(page)).toEqual([])
    expect(wrong).toEqual([])
    await close()
  })

  it('have other colours in the dark theme', async () => {
    const colors = ['light', 'dark'].map(async (scheme) => {
      const { page, close } = await openGallery(browser, files, { scheme: scheme as 'light' | 'dark' })
      const color = await page.evaluate('getComputedStyle(document.querySelector(".card")).backgroundColor')
      await close()
      return color
    })
    const [light, dark] = await Promise.all(colors)
    expect(light).not.toBe(dark)
  })
})
