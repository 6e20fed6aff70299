import type { Route } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { findBarriers, hasBrowser, isWide } from '../support/browser.ts'
import { serveExplorer, toPrepare } from '../support/explorer-page.ts'

const SCREENS = [
  ['desktop', 'light'],
  ['small phone', 'dark'],
] as const

/** The browser logs the status of the document. */
const isOther = (error: string) => !/status of 404/.test(error)

describe.skipIf(!hasBrowser)('documents that the service writes', () => {
  const { open, toUrl } = serveExplorer()
  const prepare = toPrepare({
    search: [{ type: 'dao', _id: '893ec80ae8dcc44e6c2a0b49', name: 'Sample', symbol: null }],
    stream: (route: Route) => route.fulfill({ contentType: 'text/event-stream', body: ': nothing changes\n\n' }),
  })

  it.each(['sql', 'baskets', 'alerts', 'provenance'])('begin to load the code of /%s', async (name) => {
    const html = await (await fetch(toUrl(`/${name}`))).text()
    const file = new RegExp(`<link rel="modulepreload" crossorigin href="./(assets/${name}-[^"]+[.]js)">`).exec(
      html,
    )?.[1]
    const response = await fetch(toUrl(`/${file}`))
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/javascript; charset=utf-8'])
    expect(await (await fetch(toUrl('/tokens'))).text()).not.toContain(`/${name}-`)
  })

  it.each(SCREENS)('show the error codes below the header of the page: %s, %s', async (screen, scheme) => {
    const { page, wrong, close } = await open('/docs/errors#unavailable', { screen, scheme, prepare })
    await page.getByRole('heading', { level: 1, name: 'Error codes' }).waitFor()
    expect(await page.title()).toBe('Error codes – dao-data')
    const inView = async () => {
      const { y, height } = (await page.locator('#unavailable').boundingBox()) ?? { y: -1, height: 0 }
      return y >= 0 && y + height <= (page.viewportSize()?.height ?? 0)
    }
    await expect.poll(inView).toBe(true)
    expect(await isWide(page)).toBe(false)
    expect(await findBarriers(page)).toEqual([])
    const first = page.locator('#missing_parameter').getByRole('link')
    await first.click()
    await page.waitForURL(toUrl('/docs/errors#missing_parameter'))
    await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Tokens' }).click()
    await page.getByRole('heading', { level: 1, name: 'Tokens' }).waitFor()
    await page.goBack()
    await first.waitFor()
    expect(await page.title()).toBe('Error codes – dao-data')
    expect(wrong).toEqual([])
    await close()
  })

  it.each(SCREENS)('show that nothing has a path, with search and links: %s, %s', async (screen, scheme) => {
    const { page, wrong, close } = await open('/nothing/at/all', { screen, scheme, prepare })
    await page.getByRole('heading', { level: 1, name: 'Page not found' }).waitFor()
    expect(await page.title()).toBe('Not found – dao-data')
    await page.getByText('/nothing/at/all').waitFor()
    expect(await isWide(page)).toBe(false)
    expect(await findBarriers(page)).toEqual([])
    expect(await page.getByRole('main').getByRole('link', { name: 'Reference' }).getAttribute('href')).toBe('reference')
    await page.getByRole('button', { name: 'Search tokens, DAOs and pages' }).click()
    await page.keyboard.type('sample')
    await page.getByRole('option', { name: /Sample/ }).click()
    await page.waitForURL(toUrl('/daos/893ec80ae8dcc44e6c2a0b49'))
    await page.goBack()
    await page.getByRole('main').getByRole('link', { name: 'Tokens' }).click()
    await page.waitForURL(toUrl('/tokens'))
    expect(wrong.filter(isOther)).toEqual([])
    await close()
  })
})
