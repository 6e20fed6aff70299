import type { Locator } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { findBarriers, hasBrowser, isInView, isWide } from '../support/browser.ts'
import { serveDemo, settled } from '../support/explorer-page.ts'
import { createRandom } from '../support/random.ts'

interface Token {
  readonly _id: string
  readonly name: string
  readonly symbol: string
  readonly financialData: Readonly<Record<string, number | string | null>>
}

describe.skipIf(!hasBrowser)('explorer in a browser', () => {
  const demo = serveDemo()
  const { open } = demo
  const listTokens = (query: string) => demo.get<Token[]>(`/data/tokens?${query}`)

  const UNI = 'a00a15074c647764fac27d6c'
  const UNISWAP = '893ec80ae8dcc44e6c2a0b49'
  const PAGES: readonly (readonly [path: string, heading: string, ...cards: string[]])[] = [
    ['/', 'DAOs and their tokens', 'Newest proposals'],
    ['/tokens', 'Tokens', 'All tokens'],
    ['/daos', 'DAOs', 'DAOs with a known treasury'],
    ['/daos?about=communities', 'DAOs', 'DAOs with a known community'],
    ['/daos?about=all', 'DAOs', 'All DAOs'],
    [`/tokens/${UNI}`, 'Uniswap', 'Numbers', 'Supply held by the largest holders'],
    [`/tokens/${UNI}?metric=candles&range=7d`, 'Uniswap', 'Candles'],
    [`/daos/${UNISWAP}`, 'Uniswap', 'Summary', 'Treasury over time', 'Newest proposals'],
    [`/daos/${UNISWAP}?tab=treasury`, 'Uniswap', 'Holdings', 'Change by asset, 30 days'],
    [
      `/daos/${UNISWAP}?tab=governance`,
      'Uniswap',
      'Newest proposals',
      'Top voters',
      'Voting power of the largest delegates',
    ],
    [`/daos/${UNISWAP}?tab=report`, 'Uniswap', 'Price', 'Change by asset, 30 days', 'Top voters'],
    ['/governance', 'Governance', 'Active votes', 'Recent results', 'Snapshot governance by DAO'],
    ['/treasuries', 'Treasuries', 'Treasuries by value', 'Treasuries by kind of asset'],
    ['/index', 'Index', 'Composition', 'Changes of the members'],
    [`/compare?ids=${UNI},d9def830e1a4b8b43c928d43`, 'Compare', 'Side by side'],
    [`/compare?of=daos&ids=${UNISWAP}`, 'Compare', 'Side by side'],
    ['/baskets', 'Baskets', 'Rule', 'Basket and Index', 'Statistics', 'Rebalances'],
    ['/freshness', 'Data', 'Datasets'],
    [`/alerts?who=ids&ids=${UNI}&level=ten`, 'Alerts', 'Fired alerts', 'Rules', 'Build a rule'],
  ]

  it.each(PAGES)('shows the data of %s on any screen without accessibility errors', async (path, heading, ...cards) => {
    for (const [screen, scheme] of [
      ['desktop', 'light'],
      ['small phone', 'dark'],
    ] as const) {
      const { page, wrong, close } = await open(path, { screen, scheme })
      for (const name of cards) await page.getByRole('region', { name, exact: true }).first().waitFor()
      await settled(page)
      expect(await page.getByRole('heading', { level: 1 }).textContent()).toContain(heading)
      await page.getByText('DEMO', { exact: true }).waitFor()
      expect(await page.locator('td:empty, dd:empty').count()).toBe(0)
      expect(await isWide(page), `${path} ${screen}`).toBe(false)
      expect(await findBarriers(page), `${path} ${screen} ${scheme}`).toEqual([])
      expect(wrong).toEqual([])
      await close()
    }
  })

  it.each([
    ['/governance', 'Active votes', /leads$/],
    [`/daos/${UNISWAP}?tab=governance`, 'Newest proposals', /^closed|executed$/],
    [`/daos/${UNISWAP}?tab=treasury`, 'Holdings', /^quantity/],
    ['/index', 'Compositions so far', /^[A-Z]+, [A-Z]+, /],
    ['/', 'Newest proposals', /^in \d/],
  ])('shows the columns that matter on a small phone without scrolling sideways: %s, %s', async (path, name, text) => {
    const { page, close } = await open(path, { screen: 'small phone' })
    const table = page.getByRole('region', { name: `Table: ${name}`, exact: true })
    await table.waitFor()
    await settled(page)
    expect(await isInView(table, text)).toBe(true)
    await close()
  })

  it('shows an error with its reason and retries', async () => {
    const problem = { title: 'Not available', status: 503, detail: 'The database is away.', code: 'unavailable' }
    const refused = {
      status: 503,
      contentType: 'application/problem+json',
      headers: { 'x-request-id': 'request-7' },
      body: JSON.stringify(problem),
    }
    const { page, close } = await open('/tokens', {
      prepare: (page) => page.route('**/data/tokens?*', (route) => route.fulfill(refused)),
    })
    const alert = page.getByRole('alert')
    await alert.waitFor()
    expect(await alert.textContent()).toMatch(/Not available\. The database is away\..*request-7/)
    await page.unroute('**/data/tokens?*')
    await alert.getByRole('button', { name: 'Try again' }).click()
    await page.getByRole('link', { name: 'Uniswap UNI' }).waitFor()
    expect(await alert.count()).toBe(0)
    await close()
  })

  it('keeps its content while the service is unavailable', async () => {
    const { page, close } = await open('/tokens')
    await page.getByRole('link', { name: 'Uniswap UNI' }).waitFor()
    await page.route('**/data/tokens?*', (route) => route.abort())
    await page.getByRole('button', { name: 'Price' }).click()
    await page.getByRole('alert').waitFor()
    expect(await page.getByRole('alert').textContent()).toContain('could not be reached')
    await page.goBack()
    await page.getByRole('link', { name: 'Uniswap UNI' }).waitFor()
    await close()
  })

  it('shows a message while it waits for a slow service', async () => {
    let release = () => {}
    const released = new Promise<void>((resolve) => {
      release = resolve
    })
    const { page, close } = await open('/tokens', {
      prepare: (page) =>
        page.route('**/data/tokens?*', async (route) => {
          await released
          await route.continue()
        }),
    })
    await page.getByText('Still loading records').waitFor()
    release()
    await page.getByRole('link', { name: 'Uniswap UNI' }).waitFor()
    await close()
  })

  it('works without a mouse', async () => {
    const { page, close } = await open('/')
    await page.getByRole('heading', { level: 1 }).waitFor()
    await page.keyboard.press('Control+k')
    await page.keyboard.type('uniswap')
    await page.getByRole('option', { name: /Uniswap.*Token/ }).waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Uniswap UNI' }).waitFor()
    const chart = page.locator('.chart[data-drawn]').first()
    await chart.waitFor()
    await chart.focus()
    const said = page.locator('output.point').first()
    await page.keyboard.press('Home')
    const first = await said.textContent()
    await page.keyboard.press('ArrowRight')
    await expect.poll(() => said.textContent()).not.toBe(first)
    await page.keyboard.press('/')
    await page.keyboard.type('freshness')
    await page.getByRole('option', { name: /Data: freshness/ }).waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Data' }).waitFor()
    await close()
  })

  it('shows the numbers of the API', async () => {
    const random = createRandom(7)
    const tokens = await listTokens('limit=100')
    const { page, close } = await open('/compare')
    for (let round = 0; round < 5; round += 1) {
      const token = random.pick(tokens)
      await page.goto(demo.toUrl(`/tokens/${token._id}`))
      const numbers = page.getByRole('region', { name: 'Numbers', exact: true })
      await numbers.waitFor()
      const shown = await numbers
        .locator('data')
        .evaluateAll((all) => all.map((one) => Number(one.getAttribute('value'))))
      const { price: _price, lastUpdated: _time, ...existing } = token.financialData
      const expected = Object.values(existing).filter((value) => value !== null)
      expect(shown.toSorted()).toEqual(expected.toSorted())
      const unknown = Object.values(existing).filter((value) => value === null)
      expect(await numbers.getByText('not known').count()).toBe(unknown.length)
    }
    await close()
  })

  const { get } = demo
  const valuesOf = (of: Locator) =>
    of.locator('data').evaluateAll((all) => all.map((one) => Number(one.getAttribute('value'))))

  it('shows all treasuries as areas with links, and moves between them by keyboard', async () => {
    interface Treasury {
      readonly _id: string
      readonly name: string
      readonly valueUsd: number
      readonly withoutOwnTokenUsd: number | null
    }
    const treasuries = await get<Treasury[]>('/data/daos/treasury/kinds?limit=500&sort=-valueUsd')
    const { page, wrong, close } = await open('/treasuries')
    const map = page.getByRole('list', { name: 'Treasuries by value' })
    await map.getByRole('link').first().waitFor()
    const cells = await map.getByRole('link').count()
    const shown = treasuries.slice(0, cells)
    expect(cells).toBeGreaterThan(5)
    const values = await valuesOf(map)
    expect(values.slice(0, cells)).toEqual(shown.map(({ valueUsd }) => valueUsd))
    const sumOf = (some: readonly number[]) => some.reduce((sum, value) => sum + value, 0)
    expect(sumOf(values)).toBeCloseTo(sumOf(treasuries.map(({ valueUsd }) => valueUsd)), 0)
    // The key of the largest treasury stands below the map until another one is pointed at.
    const said = page.getByRole('region', { name: 'Treasuries by value' }).locator('.point')
    expect(await said.textContent()).toContain(`${shown[0]?.name}: `)
    await map.getByRole('link').first().focus()
    await page.keyboard.press('ArrowRight')
    await expect.poll(() => said.textContent()).toContain(`${shown[1]?.name}: `)
    await page.keyboard.press('End')
    await expect.poll(() => said.textContent()).toContain(`${shown.at(-1)?.name}: `)
    await page.getByRole('group', { name: 'Area' }).getByRole('button', { name: 'Without own token' }).click()
    const others = treasuries.map(({ withoutOwnTokenUsd }) => withoutOwnTokenUsd ?? 0).toSorted((a, b) => b - a)
    await expect.poll(async () => (await valuesOf(map))[0]).toBe(others[0])
    await map.getByRole('link').first().focus()
    await page.keyboard.press('Enter')
    await page.getByRole('region', { name: 'Change by asset, 30 days' }).waitFor()
    expect(wrong).toEqual([])
    await close()
  })

  it('shows the changes of the members of the Index', async () => {
    const members = await get<{ token: string; quantity: number }[]>('/data/index/weights?sort=-weight')
    const current = members.filter(({ quantity }) => quantity > 0).map(({ token }) => token)
    const tokens = await listTokens(`limit=100&${current.map((id) => `id=${id}`).join('&')}`)
    const { page, wrong, close } = await open('/index')
    const rows = page.getByRole('region', { name: 'Table: Changes of the members' }).locator('tbody tr')
    await expect.poll(() => rows.count()).toBe(current.length)
    const periods = ['1h', '24h', '7d', '30d', '60d'].map((period) => `percentChange${period}`)
    for (const [at, id] of current.entries()) {
      const data = tokens.find(({ _id }) => _id === id)?.financialData
      const known = [...periods, 'percentChanged90d'].map((member) => data?.[member] ?? null)
      const expected = known.filter((value) => value !== null)
      await expect.poll(() => valuesOf(rows.nth(at))).toEqual(expected)
      expect(await rows.nth(at).getByText('not known').count()).toBe(known.length - expected.length)
    }
    await rows.first().getByRole('link').click()
    await page.waitForURL(`**/tokens/${current[0]}`)
    expect(wrong).toEqual([])
    await close()
  })

  it('shows what the largest holders and delegates have together', async () => {
    interface Holders {
      readonly holdersData: { readonly topHolders: readonly { readonly share: number }[] }
    }
    const [holders] = await get<Holders[]>(`/data/tokens/holders?id=${UNI}`)
    const delegates = await get<{ share: number }[]>(`/data/daos/governance/delegates?id=${UNISWAP}&limit=1000`)
    const toSums = (shares: readonly { share: number }[] = []) => {
      let sum = 0
      return shares.map(({ share }) => {
        sum += share
        return sum
      })
    }
    for (const [path, name, expected] of [
      [`/tokens/${UNI}`, 'Supply held by the largest holders', toSums(holders?.holdersData.topHolders)],
      [`/daos/${UNISWAP}?tab=governance`, 'Voting power of the largest delegates', toSums(delegates)],
    ] as const) {
      const { page, wrong, close } = await open(path)
      const card = page.getByRole('region', { name, exact: true })
      await card.locator('.chart[data-drawn]').waitFor()
      const words = await card.getByRole('img').getAttribute('aria-label')
      expect(words).toContain(`Ranks 1 to ${expected.length},`)
      await card.getByRole('button', { name: 'Table' }).click()
      const values = await valuesOf(card.locator('tbody tr').nth(2))
      expect(values[0]).toBeCloseTo(expected[2] ?? Number.NaN, 9)
      expect(wrong).toEqual([])
      await close()
    }
  })

  it('shows the votes and the power of an address in all DAOs, linked from votes and found by address', async () => {
    const { page, wrong, close } = await open(`/daos/${UNISWAP}?tab=governance`, { screen: 'small phone' })
    const link = page.getByRole('region', { name: 'Top voters', exact: true }).getByRole('link').first()
    const address = (await link.getAttribute('href'))?.replace('voters/', '') ?? ''
    await link.click()
    await page.getByRole('heading', { level: 1, name: /^Voter 0x/ }).waitFor()
    const daos = page.getByRole('region', { name: 'DAOs', exact: true })
    await daos.getByRole('link', { name: 'Uniswap' }).waitFor()
    const records = await demo.get<{ votes: number }[]>(`/data/voters?address=${address}`)
    const shown = await daos
      .locator('tbody tr td:nth-child(2) data')
      .evaluateAll((all) => all.map((one) => one.getAttribute('value')))
    expect(shown).toEqual(records.map(({ votes }) => String(votes)))
    expect(await isWide(page)).toBe(false)
    expect(await findBarriers(page)).toEqual([])
    // The bar of a phone has four pages, and a button for the others.
    await page.getByRole('button', { name: 'More', exact: true }).click()
    await page.getByRole('link', { name: 'Compare' }).click()
    await page.keyboard.press('Control+k')
    await page.keyboard.type(address.toUpperCase().replace('0X', '0x'))
    await page.getByRole('option', { name: /Votes and delegations/ }).click()
    await daos.getByRole('link', { name: 'Uniswap' }).waitFor()
    await page.reload()
    await daos.getByRole('link', { name: 'Uniswap' }).waitFor()
    expect(wrong).toEqual([])
    await close()
  })

  it('prints the report of a DAO on three pages, with links, and the source on each page', async () => {
    const { page, wrong, close } = await open(`/daos/${UNISWAP}?tab=report`, { scheme: 'dark' })
    for (const name of ['Price', 'Treasury over time', 'Runway', 'Newest proposals', 'Top voters'])
      await page.getByRole('region', { name, exact: true }).waitFor()
    await settled(page)
    await page.locator('.chart:not([data-drawn])').first().waitFor({ state: 'detached' })
    const pdf = (await page.pdf({ format: 'A4', preferCSSPageSize: true, printBackground: true })).toString('latin1')
    expect(pdf.match(/\/Type\s*\/Page\b/g)).toHaveLength(3)
    expect(pdf.match(/\/URI \(/g)?.length).toBeGreaterThan(10)
    // The margins have the address of the DAO, and the printed content is as wide as the sheet.
    const margins = await page.evaluate<string>(
      `[...document.adoptedStyleSheets].flatMap(({ cssRules }) => [...cssRules]).map(({ cssText }) => cssText).join()`,
    )
    expect(margins).toContain(demo.toUrl(`/daos/${UNISWAP}`))
    await page.emulateMedia({ media: 'print' })
    await page.setViewportSize({ width: 703, height: 1010 })
    expect(await isWide(page)).toBe(false)
    expect(wrong).toEqual([])
    await close()
  })

  it('keeps the selected colour scheme after a reload', async () => {
    const { page, close } = await open('/index')
    const back = () => page.evaluate<string>('getComputedStyle(document.body).backgroundColor')
    const light = await back()
    const button = page.getByRole('button', { name: /Colours/ })
    await button.click()
    await button.click()
    await expect.poll(back).not.toBe(light)
    await page.reload()
    await page.getByRole('button', { name: 'Colours: dark. Change' }).waitFor()
    expect(await back()).not.toBe(light)
    await close()
  })
})
