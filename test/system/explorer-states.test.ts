import type { Locator, Page, Route } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { hasBrowser } from '../support/browser.ts'
import { type Answers, ID, serveExplorer, TOKEN, toPrepare } from '../support/explorer-page.ts'

const SECOND = 'b'.repeat(24)
const DAY = 86_400_000

const DAO = {
  ...{ _id: ID, name: 'Sample', description: '', category: [], token: null, snapshotName: 'sample.eth' },
  ...{ website: null, twitter: null, discord: null, telegram: null, whitepaper: null, tokenomics: null },
}

const queryOf = (route: Route) => new URL(route.request().url()).searchParams

/** A price a day from the requested start until the page's current time. */
const answerPrices = (route: Route) => {
  const start = Date.parse(queryOf(route).get('start') ?? '')
  const data = Array.from({ length: 20 }, (_, day) => {
    const timestamp = new Date(start + day * DAY).toISOString()
    return { timestamp, quote: { USD: { price: 10 + day, timestamp } } }
  })
  return route.fulfill({ json: { name: 'Sample', id: ID, data } })
}

/** Computed value of an element's style property. */
const styleOf = (of: Locator, property: string) =>
  of.evaluate((one, name) => one.ownerDocument.defaultView?.getComputedStyle(one).getPropertyValue(name), property)

describe.skipIf(!hasBrowser)('explorer page in a browser', () => {
  const explorer = serveExplorer()
  const open = (path: string, answers: Answers) => explorer.open(path, { prepare: toPrepare(answers) })
  const chartOf = (page: Page) => page.locator('.chart[data-drawn]').first()

  it('prints lists with their headings, and dark charts in colours for white paper', async () => {
    const { page, close } = await explorer.open('/tokens', {
      scheme: 'dark',
      prepare: toPrepare({
        tokens: [TOKEN],
        'tokens/historic-financial': answerPrices,
        'tokens/historic-dex-ohlcv': { data: [] },
      }),
    })
    await page.getByRole('link', { name: 'Sample SMP' }).waitFor()
    const toPaper = () => page.emulateMedia({ media: 'print', colorScheme: 'dark' })
    const filterOf = (of: Locator) => styleOf(of, 'filter')
    await toPaper()
    await page.getByRole('columnheader', { name: 'Market cap' }).getByText('Market cap').waitFor()
    expect(await page.getByRole('button', { name: /Colours/ }).count()).toBe(0)
    expect(await filterOf(page.getByRole('img', { name: /^Price of Sample/ }))).toContain('invert(1)')
    await page.emulateMedia({ media: 'screen' })
    await page.getByRole('link', { name: 'Sample SMP' }).click()
    await chartOf(page).waitFor()
    await toPaper()
    expect(await filterOf(chartOf(page).locator('canvas'))).toContain('invert(1)')
    const card = chartOf(page).locator('xpath=ancestor::section[1]')
    const widthOf = (of: Locator) => of.evaluate((one) => one.getBoundingClientRect().width)
    expect(await widthOf(chartOf(page).locator('canvas'))).toBeLessThanOrEqual(await widthOf(card))
    await close()
  })

  it('writes a rule of alerts by keyboard, and describes mistakes', async () => {
    const found = { type: 'token', _id: ID, name: 'Sample', symbol: 'SMP', slug: null, image: null, matched: 'name' }
    const { page, close } = await open('/alerts', {
      search: [{ ...found, match: { kind: 'exact', text: 'Sample' } }],
      tokens: [TOKEN],
    })
    const rule = page.getByRole('region', { name: 'The rule' })
    await rule.getByText('what: { kind: level, series: price, above: 10 }').first().waitFor()
    await page.getByLabel('Side').focus()
    await page.keyboard.press('f')
    await page.keyboard.press('Tab')
    await page.keyboard.type('1.5x')
    const level = page.getByLabel('Level')
    await expect.poll(() => level.getAttribute('aria-invalid')).toBe('true')
    const about = await level.getAttribute('aria-describedby')
    expect(await page.locator(`#${about}`).textContent()).toContain('Enter a number')
    expect(await rule.getByRole('status').textContent()).toContain('One field has a mistake')
    await page.keyboard.press('Backspace')
    await page.keyboard.press('Tab')
    await page.keyboard.press('s')
    await page.getByLabel('Add').focus()
    await page.keyboard.type('sam')
    await page.getByRole('button', { name: 'Sample', exact: true }).press('Enter')
    await page.getByLabel('Channels').fill('team')
    const text = `- name: level-price-below-1-5\n  what: { kind: level, series: price, below: 1.5 }\n  who: { ids: [${ID}] } # Sample\n  to: [team]`
    await expect.poll(() => rule.locator('code').first().textContent()).toBe(text)
    // The address has all of it.
    await page.reload()
    await expect.poll(() => rule.locator('code').first().textContent()).toBe(text)
    await page.getByLabel('Series').selectOption('treasury')
    expect(await page.getByRole('button', { name: 'Remove Sample' }).count()).toBe(0)
    await close()
  })

  it('shows the selection and the current page in forced colours', async () => {
    const { page, close } = await explorer.open('/daos', { forcedColors: 'active', prepare: toPrepare({}) })
    const backOf = (of: Locator) => styleOf(of, 'background-color')
    const choice = (name: string) => page.getByRole('button', { name, exact: true })
    expect(await backOf(choice('Treasuries'))).not.toBe(await backOf(choice('Ratings')))
    const lineOf = (name: string) => styleOf(page.getByRole('link', { name, exact: true }), 'text-decoration-line')
    expect([await lineOf('DAOs'), await lineOf('Index')]).toEqual(['underline', 'none'])
    await page.getByRole('button', { name: 'Search ⌘K' }).click()
    const hits = page.getByRole('option')
    expect(await backOf(hits.nth(0))).not.toBe(await backOf(hits.nth(1)))
    await close()
  })

  it('reloads the images of a list during the day', async () => {
    const { page, close } = await open('/tokens', { tokens: [TOKEN] })
    const image = page.getByRole('img', { name: /^Price of Sample/ })
    // The browser would use a request that is still running for the next image, too.
    await expect.poll(() => image.evaluate((one) => Reflect.get(one, 'complete'))).toBe(true)
    const renewed = page.waitForRequest('**/charts/24h/**')
    await page.clock.fastForward(6 * 60_000)
    await renewed
    await close()
  })

  it('shows for a while that copying failed in a browser without a clipboard', async () => {
    const { page, wrong, close } = await explorer.open('/tokens', {
      prepare: async (page) => {
        // The clipboard is undefined on pages that are served without encryption.
        await page.addInitScript(`Object.defineProperty(navigator, 'clipboard', { value: undefined })`)
        await toPrepare({ tokens: [TOKEN] })(page)
      },
    })
    await page.getByText('Open as: All tokens').click()
    await page.getByRole('button', { name: 'Copy curl' }).click()
    await page.getByRole('button', { name: 'The browser refused: select the line above' }).waitFor()
    await page.clock.fastForward(10_000)
    await page.getByRole('button', { name: 'Copy curl' }).waitFor()
    expect(wrong.filter((text) => text.includes('clipboard'))).toEqual([])
    await close()
  })

  it('offers a reload if the code of the charts is not available', async () => {
    const { page, close } = await explorer.open(`/tokens/${ID}?range=90d`, {
      prepare: async (page) => {
        await toPrepare({
          tokens: [TOKEN],
          'tokens/historic-financial': answerPrices,
          'tokens/historic-dex-ohlcv': { data: [] },
        })(page)
        await page.route('**/assets/plot-*.js', (route) => route.fulfill({ status: 404 }))
      },
    })
    const button = page.getByRole('button', { name: 'Load the page again' }).first()
    await button.waitFor()
    await page.unroute('**/assets/plot-*.js')
    await button.click()
    await chartOf(page).waitFor()
    await close()
  })

  it('shows "no proposals" for a DAO without votes instead of "not known"', async () => {
    const { page, close } = await open(`/daos/${ID}?tab=governance`, { daos: [DAO] })
    await page.getByText('No proposals yet.').waitFor()
    await page.getByText('No votes yet.').waitFor()
    await close()
  })

  it('compares the tokens that loaded, names the failed ones, and shows no chart of another range', async () => {
    let unavailable: readonly (string | null)[] = [ID, SECOND]
    let release = () => {}
    const released = new Promise<void>((resolve) => {
      release = resolve
    })
    const { page, close } = await open(`/compare?ids=${ID},${SECOND}`, {
      tokens: [TOKEN, { ...TOKEN, _id: SECOND, symbol: 'OTH' }],
      'tokens/historic-financial': async (route: Route) => {
        if (Date.parse(queryOf(route).get('start') ?? '') < Date.parse('2023-06-01')) await released
        return unavailable.includes(queryOf(route).get('id')) ? route.abort() : answerPrices(route)
      },
    })
    const card = page.getByRole('region', { name: 'Compared', exact: true })
    const alerts = card.getByRole('alert')
    await expect.poll(() => alerts.count()).toBe(2)
    expect(await card.locator('.chart, .state.empty').count()).toBe(0)
    unavailable = [SECOND]
    await alerts.first().getByRole('button').click()
    await chartOf(page).waitFor()
    expect(await alerts.textContent()).toMatch(/^OTH: /)
    const named = () => card.getByRole('img').getAttribute('aria-label')
    await page.getByRole('button', { name: '1y', exact: true }).click()
    await card.locator('[aria-busy=true] .chart').waitFor()
    expect(await named()).toMatch(/^SMP, 90d\./)
    release()
    await expect.poll(named).toMatch(/^SMP, 1y\./)
    expect(await card.locator('[aria-busy=true]').count()).toBe(0)
    await close()
  })

  it('shows no chart of another range with the same interval, and caches the chart of each range', async () => {
    let isUnavailable = true
    const isYear = (route: Route) => Date.parse(queryOf(route).get('start') ?? '') < Date.parse('2023-06-01')
    const { page, close } = await open(`/tokens/${ID}?range=90d`, {
      tokens: [TOKEN],
      'tokens/historic-financial': (route: Route) =>
        isUnavailable && isYear(route) ? route.abort() : answerPrices(route),
      'tokens/historic-dex-ohlcv': { data: [] },
    })
    const card = page.getByRole('region', { name: 'Price', exact: true })
    const named = () => card.getByRole('img').getAttribute('aria-label')
    await chartOf(page).waitFor()
    await page.getByRole('button', { name: '1y', exact: true }).click()
    await card.getByRole('alert').waitFor()
    expect(await card.locator('.chart').count()).toBe(0)
    isUnavailable = false
    await card.getByRole('button', { name: 'Try again' }).click()
    await expect.poll(named).toMatch(/1y by 1d\./)
    // The previous chart appears without a second request.
    await page.route('**/historic-financial?*', (route) => route.abort())
    await page.getByRole('button', { name: '90d', exact: true }).click()
    await expect.poll(named).toMatch(/90d by 1d\./)
    expect(await card.getByRole('alert').count()).toBe(0)
    await close()
  })

  it('distinguishes days without trades from days without data', async () => {
    const candle = { timestamp: '2024-03-01T00:00:00.000Z', volumeUsd: 5 }
    const { page, close } = await open(`/tokens/${ID}`, {
      tokens: [TOKEN],
      'tokens/historic-financial': { data: [] },
      'tokens/historic-dex-ohlcv': (route: Route) => {
        const headers = { 'x-series-points': '1', 'x-series-missing': '29' }
        return route.fulfill({ headers, json: { name: 'Sample', id: ID, data: [candle] } })
      },
    })
    const card = page.getByRole('region', { name: 'DEX volume per day', exact: true })
    const said = '29 of 30 days have no stored trade.'
    expect(await card.locator('.known').textContent()).toBe(said)
    expect(await card.getByRole('img').getAttribute('aria-label')).toContain(said)
    await close()
  })

  it('shows the result of a proposal, and who voted how', async () => {
    const vote = (voter: string, choice: unknown, votingPower: number) => ({
      ...{ _id: voter.repeat(24), proposal: SECOND, voter: `0x${voter.repeat(40)}`, choice, votingPower },
      createdAt: '2024-03-09T00:00:00.000Z',
    })
    const { page, close } = await open(`/daos/${ID}/proposals/${SECOND}`, {
      daos: [DAO],
      'daos/governance/proposals': (route: Route) => {
        expect(queryOf(route).get('filter')).toBe(`_id=${SECOND}`)
        const known = { title: 'Fund the audit', state: 'closed', author: '0x00', url: 'https://example.com/vote' }
        const result = { choices: ['For', 'Against'], scores: [85, 15], scoresTotal: 100, votes: 2, quorum: 80 }
        const quorumState = { quorum: 80, counted: 'for', power: 85, reached: true, missing: 0, live: false }
        const times = { createdAt: '2024-03-01T00:00:00.000Z', startsAt: null, endsAt: '2024-03-09T00:00:00.000Z' }
        return route.fulfill({
          json: [{ _id: SECOND, dao: ID, ...known, ...result, ...times, outcome: null, quorumState }],
        })
      },
      'daos/governance/votes': [vote('a', 1, 75), vote('b', 2, 25)],
    })
    await page.getByRole('heading', { level: 1, name: 'Fund the audit' }).waitFor()
    const result = page.getByRole('region', { name: 'Result', exact: true })
    expect(await result.getByRole('listitem').allTextContents()).toEqual(['For85.00 %85', 'Against15.00 %15'])
    expect(await page.getByRole('progressbar', { name: 'Share of the quorum' }).getAttribute('value')).toBe('1')
    expect(await result.locator('.quorum p').first().textContent()).toBe('Quorum85 of 80106.25 %')
    expect(await result.locator('.quorum .note').textContent()).toBe('Only votes For count.')
    await page.getByText('Passed', { exact: true }).waitFor()
    const rows = page.getByRole('region', { name: 'Table: Votes' }).locator('tbody tr')
    await rows.nth(1).waitFor()
    expect(await rows.allTextContents()).toEqual([
      expect.stringMatching(/^0xaaaa…aaaaFor7575.00 %/),
      expect.stringMatching(/^0xbbbb…bbbbAgainst2525.00 %/),
    ])
    await close()
  })

  it('shows the text of a proposal without its HTML, unsafe links and images of other hosts', async () => {
    const body = [
      '# Summary',
      'A **bold** plan.<br>See [the forum](https://forum.example.com/t/1), [this](javascript:alert(1)) \u202eor not.',
      '<script>document.title = "changed"</script>',
      '<img src="https://images.example.com/a.png" onerror="alert(1)">',
      '![A chart](https://images.example.com/b.png)',
      '| Team | Amount |\n| --- | ---: |\n| Audit | 5 |',
    ]
    const proposal = { _id: SECOND, dao: ID, title: 'Fund', state: 'closed', author: '0x00', url: null, outcome: null }
    const result = { choices: ['For'], scores: [1], scoresTotal: 1, votes: 1, quorum: 0 }
    const times = { createdAt: '2024-03-01T00:00:00.000Z', startsAt: null, endsAt: '2024-03-09T00:00:00.000Z' }
    const { page, close } = await open(`/daos/${ID}/proposals/${SECOND}`, {
      daos: [DAO],
      'daos/governance/proposals': (route: Route) => {
        expect(queryOf(route).getAll('include').join(',')).toBe('body,quorum')
        return route.fulfill({ json: [{ ...proposal, ...result, ...times, body: body.join('\n\n') }] })
      },
      'daos/governance/votes': [],
    })
    const text = page.getByRole('region', { name: 'Text', exact: true })
    await text.getByRole('heading', { level: 3, name: 'Summary' }).waitFor()
    expect(await text.getByRole('paragraph').first().textContent()).toBe(
      'A bold plan.See the forum, [this](javascript:alert(1)) or not.',
    )
    expect(await text.locator('img, script, [style], [onerror]').count()).toBe(0)
    const links = await text.getByRole('link').evaluateAll((all) => all.map((link) => link.getAttribute('href')))
    expect(links).toEqual(['https://forum.example.com/t/1', 'https://images.example.com/b.png'])
    expect(await text.getByRole('cell').allTextContents()).toEqual(['Audit', '5'])
    expect(await page.title()).not.toContain('changed')
    await close()
  })

  it('shows a card of /governance once those above it have their rows, and rows with their names', async () => {
    const proposal = { _id: SECOND, dao: ID, title: 'Fund', state: 'active', author: '0x00', url: null, outcome: null }
    const result = { choices: ['For'], scores: [1], scoresTotal: 1, votes: 1, quorum: 0, flagged: true }
    const times = { createdAt: '2024-03-01T00:00:00.000Z', startsAt: null, endsAt: '2024-03-11T00:00:00.000Z' }
    let release = () => {}
    const released = new Promise<void>((resolve) => {
      release = resolve
    })
    let note = () => {}
    const requested = new Promise<void>((resolve) => {
      note = resolve
    })
    const { page, close } = await open('/governance', {
      'daos/governance/proposals': [{ ...proposal, ...result, ...times }],
      daos: async (route: Route) => {
        note()
        await released
        return route.fulfill({ json: [DAO] })
      },
    })
    const cardOf = (name: string) => page.getByRole('region', { name, exact: true })
    await requested
    await cardOf('Active votes').getByText('Loading').waitFor()
    expect(await page.getByRole('row').count()).toBe(0)
    expect(await cardOf('Recent results').isVisible()).toBe(false)
    release()
    await cardOf('Recent results').waitFor()
    const row = cardOf('Active votes').locator('tbody tr')
    expect(await row.textContent()).toContain('Sample')
    expect(await row.getByRole('link', { name: 'flagged Fund' }).getAttribute('href')).toBe(
      `daos/${ID}/proposals/${SECOND}`,
    )
    await close()
  })

  it('explains on /provenance without a value how to choose one', async () => {
    let requests = 0
    const { page, close } = await open('/provenance', {
      provenance: (route: Route) => {
        requests += 1
        return route.fulfill({ json: {} })
      },
    })
    await page.getByText('No value is selected.').waitFor()
    expect(requests).toBe(0)
    await close()
  })

  it('shows a lone point as text, and no card for a dataset without data', async () => {
    const { page, close } = await open(`/daos/${ID}?tab=community`, {
      daos: [DAO],
      'daos/socials/historic-telegram': [{ recordedAt: '2024-03-10T00:00:00.000Z', totalMembers: 24 }],
    })
    const card = page.getByRole('region', { name: 'Telegram members', exact: true })
    await card.getByText('1 point of data so far.').waitFor()
    expect(await card.locator('.chart').count()).toBe(0)
    expect(await card.locator('output').textContent()).toContain('members 24')
    await expect.poll(() => page.getByRole('region', { name: 'Discord members', exact: true }).count()).toBe(0)
    await close()
  })

  it('marks a fresh dataset with missing data as incomplete', async () => {
    const known = { cadence: '1d', lastUpdated: '2024-03-10T00:00:00.000Z', expectedEvery: 86_400, lagSeconds: 1 }
    const rest = { state: 'fresh', failing: [], rows: 1, entities: 1, earliest: '2024-03-01T00:00:00.000Z' }
    const toDataset = (dataset: string, complete: number) => ({ dataset, complete, ...known, ...rest })
    const { page, close } = await open('/freshness', {
      status: { mode: 'demo', upstream: '', datasets: [toDataset('prices', 1), toDataset('twitter-sentiment', 0.24)] },
    })
    const rows = page.getByRole('region', { name: 'Table: Datasets' }).locator('tbody tr')
    await rows.nth(1).waitFor()
    expect(await rows.allTextContents()).toEqual([
      expect.stringMatching(/^Pricesfresh100.00 %/),
      expect.stringMatching(/^Twitter sentimentincomplete24.00 %/),
    ])
    await close()
  })
})
