import { beforeAll, describe, expect, it } from 'vitest'
import { findBarriers, hasBrowser, isWide } from '../support/browser.ts'
import { region, serveDemo, settled } from '../support/explorer-page.ts'

const UNISWAP = '893ec80ae8dcc44e6c2a0b49'
const NEVER_VOTED = `0x${'12'.repeat(20)}`

interface Vote {
  readonly proposal: string
  readonly votingPower: number
  readonly choiceText: string | null
}

describe.skipIf(!hasBrowser)('page of a voter', () => {
  const demo = serveDemo()
  const { open } = demo
  let delegate: string
  beforeAll(async () => {
    const [first] = await get<{ delegate: string }[]>(`delegates?id=${UNISWAP}&sort=-votesCast&limit=1`)
    delegate = first?.delegate ?? ''
  })

  const get = async <T>(query: string) => demo.get<T>(`/data/daos/governance/${query}`)
  const votesOf = (voter: string) =>
    get<Vote[]>(`votes?id=${UNISWAP}&source=all&filter=voter=${voter}&include=choiceText&limit=10000`)

  it('is linked from the delegates of a DAO, and lists its votes as the API has them', async () => {
    const { page, wrong, close } = await open(`/daos/${UNISWAP}?tab=governance`)
    const link = region(page, 'Top delegates').getByRole('link').first()
    const address = new URL((await link.getAttribute('href')) ?? '', demo.toUrl('/')).pathname.split('/').at(-1) ?? ''
    await link.click()
    await region(page, 'Votes in Uniswap').locator('tbody tr').first().waitFor()
    await settled(page)
    const votes = await votesOf(address)
    expect(votes.length).toBeGreaterThan(1)
    const record = await get<{ voted: number; missedProposals: readonly unknown[] }>(
      `record?id=${UNISWAP}&address=${address}`,
    )
    const recorded = region(page, 'Record in Uniswap, 90 days')
    const voted = recorded
      .locator('div', { hasText: /^Voted/ })
      .locator('data')
      .first()
    expect(Number(await voted.getAttribute('value'))).toBe(record.voted)
    expect(await recorded.locator('tbody tr').count()).toBe(record.missedProposals.length)
    const rows = region(page, 'Votes in Uniswap').locator('tbody tr')
    expect(await rows.count()).toBe(Math.min(100, votes.length))
    const [first] = votes
    expect(await rows.first().getByRole('link').getAttribute('href')).toBe(
      `daos/${UNISWAP}/proposals/${first?.proposal}`,
    )
    expect(await rows.first().textContent()).toContain(first?.choiceText)
    expect(Number(await rows.first().locator('td.number data').getAttribute('value'))).toBe(first?.votingPower)
    await rows.first().getByRole('link').click()
    await region(page, 'Result').waitFor()
    expect(wrong).toEqual([])
    await close()
  })

  it('exports all votes, within four actions from the front page', async () => {
    const { page, close } = await open('/')
    await page.keyboard.press('Control+k')
    await page.keyboard.type(delegate)
    await page.getByRole('option', { name: /Votes and delegations/ }).waitFor()
    await page.keyboard.press('Enter')
    const card = region(page, 'Votes in Uniswap')
    await card.getByText('Open as').click()
    const href = await card.getByRole('link', { name: 'CSV', exact: true }).getAttribute('href')
    const lines = (await (await fetch(href ?? '')).text()).trimEnd().split('\n')
    expect(lines.length - 1).toBe((await votesOf(delegate)).length)
    expect(lines[0]).toContain('choiceText')
    await close()
  })

  it('shows 90 days of work by a link and a CSV, within four actions from the front page', async () => {
    const { page, close } = await open('/')
    await page.keyboard.press('Control+k')
    await page.keyboard.type(delegate)
    await page.getByRole('option', { name: /Votes and delegations/ }).waitFor()
    await page.keyboard.press('Enter')
    const card = region(page, 'Record in Uniswap, 90 days')
    await card.getByText('Open as').click()
    const href = await card.getByRole('link', { name: 'CSV', exact: true }).getAttribute('href')
    const [head, ...rows] = (await (await fetch(href ?? '')).text()).trimEnd().split('\n')
    const record = await get<{ proposals: number; voted: number }>(`record?id=${UNISWAP}&address=${delegate}`)
    expect(record.voted).toBeGreaterThan(0)
    expect(head).toContain('participation')
    expect(rows).toHaveLength(record.proposals)
    expect(rows.filter((row) => row.includes('"voted"'))).toHaveLength(record.voted)
    const shared = await open(page.url().slice(demo.toUrl('').length))
    const voted = region(shared.page, 'Record in Uniswap, 90 days')
      .locator('div', { hasText: /^Voted/ })
      .locator('data')
    expect(Number(await voted.first().getAttribute('value'))).toBe(record.voted)
    await shared.close()
    await close()
  })

  it('closes a menu by Escape, by a click outside, and when another one opens', async () => {
    const { page, close } = await open(`/voters/${delegate}`)
    const [daos, votes] = [region(page, 'DAOs'), region(page, 'Votes in Uniswap')]
    const isOpen = (card: typeof daos) => card.locator('details.open-as').evaluate((menu) => menu.hasAttribute('open'))
    await votes.locator('tbody tr').first().waitFor()
    await daos.getByText('Open as').click()
    expect(await isOpen(daos)).toBe(true)
    await daos.getByRole('link', { name: 'CSV', exact: true }).focus()
    await page.keyboard.press('Escape')
    expect(await isOpen(daos)).toBe(false)
    expect(await page.evaluate('document.activeElement.tagName')).toBe('SUMMARY')
    await daos.getByText('Open as').click()
    await votes.getByText('Open as').click()
    expect([await isOpen(daos), await isOpen(votes)]).toEqual([false, true])
    await page.getByRole('heading', { level: 1 }).click()
    expect(await isOpen(votes)).toBe(false)
    await close()
  })

  it('fits a small phone without accessibility errors, also without votes', async () => {
    for (const path of [`/voters/${delegate}`, `/voters/${NEVER_VOTED}`]) {
      const { page, wrong, close } = await open(path, { screen: 'small phone', scheme: 'dark' })
      await region(page, 'DAOs').locator('.shown').waitFor()
      await settled(page)
      if (path.endsWith(NEVER_VOTED)) {
        await page.getByText('has not voted in a known DAO').waitFor()
        expect(await page.getByRole('region', { name: /^Votes in/ }).count()).toBe(0)
      }
      expect(await isWide(page), path).toBe(false)
      expect(await findBarriers(page), path).toEqual([])
      expect(wrong).toEqual([])
      await close()
    }
  })
})
