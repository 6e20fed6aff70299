import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { hasBrowser } from '../support/browser.ts'
import { region, serveDemo } from '../support/explorer-page.ts'

/** One action of a reader: a click, a typed text or a key. */
type Action = (page: Page) => Promise<unknown>

interface Task {
  readonly question: string
  /** The page on which the reader begins. */
  readonly from: string
  readonly screen?: 'phone'
  readonly actions: readonly Action[]
  /** Resolves when the page shows the answer. */
  readonly answered: Action
  /** What the browser logs; default: nothing. */
  readonly logged?: readonly string[]
}

const clickOn =
  (find: (page: Page) => ReturnType<Page['locator']>): Action =>
  (page) =>
    find(page).click()
const type =
  (text: string): Action =>
  (page) =>
    page.keyboard.type(text)
const press =
  (key: string): Action =>
  (page) =>
    page.keyboard.press(key)

const openPage = (name: string) =>
  clickOn((page) => page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name, exact: true }))
const followLink = (card: string, name?: string) =>
  clickOn((page) =>
    region(page, card)
      .locator('td')
      .getByRole('link', name === undefined ? {} : { name })
      .first(),
  )
const openTab = (name: string) => clickOn((page) => page.getByRole('link', { name, exact: true }))
const hasRows =
  (card: string): Action =>
  (page) =>
    region(page, card).locator('tbody tr').first().waitFor()
const hasTitle =
  (name: string): Action =>
  (page) =>
    page.getByRole('heading', { level: 1, name }).waitFor()

/** Waits until the first cells of the first row are within the width of the screen. */
const fitsScreen =
  (card: string, cells: number): Action =>
  async (page) => {
    const cell = region(page, card)
      .locator('tbody tr')
      .first()
      .locator('td')
      .nth(cells - 1)
    await cell.locator('data').waitFor()
    const { x, width } = (await cell.boundingBox()) ?? { x: Number.POSITIVE_INFINITY, width: 0 }
    expect(x + width).toBeLessThanOrEqual(page.viewportSize()?.width ?? 0)
  }

const downloadCsv: Action = async (page) => {
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'CSV', exact: true }).click(),
  ])
  expect(download.suggestedFilename()).toMatch(/\.csv$/)
  await download.cancel()
}

const TASKS: readonly (readonly [actions: number, task: Task])[] = [
  [
    0,
    {
      question: 'which votes end next',
      from: '/',
      actions: [],
      answered: hasRows('Votes ending soon'),
    },
  ],
  [
    0,
    {
      question: 'which tokens gained most in 24 hours, and how much, on a phone',
      from: '/',
      screen: 'phone',
      actions: [],
      answered: fitsScreen('Top gainers, 24 h', 3),
    },
  ],
  [
    1,
    {
      question: 'price and change of the largest tokens, on a phone',
      from: '/',
      screen: 'phone',
      actions: [openPage('Tokens')],
      answered: fitsScreen('All tokens', 3),
    },
  ],
  [
    1,
    {
      question: 'which treasuries are largest without the own token',
      from: '/',
      actions: [openPage('Treasuries')],
      answered: hasRows('Treasuries by kind of asset'),
    },
  ],
  [
    2,
    {
      question: 'who voted on the newest result, and how',
      from: '/',
      actions: [openPage('Governance'), followLink('Recent results')],
      answered: hasRows('Votes'),
    },
  ],
  [
    2,
    {
      question: 'when and why data is missing',
      from: '/',
      actions: [openPage('Data'), followLink('Datasets', 'Twitter followers')],
      answered: hasRows('Gaps of the last 30 days'),
    },
  ],
  [
    2,
    {
      question: 'which assets of a treasury changed in 30 days',
      from: '/daos',
      actions: [followLink('DAOs with a known treasury', 'Uniswap'), openTab('Treasury')],
      answered: hasRows('Change by asset, 30 days'),
    },
  ],
  [
    2,
    {
      question: 'a report of a DAO for print',
      from: '/daos',
      actions: [followLink('DAOs with a known treasury', 'Uniswap'), openTab('Report')],
      answered: (page) => page.getByRole('button', { name: 'Print or save as PDF' }).waitFor(),
    },
  ],
  [
    3,
    {
      question: 'all tokens as CSV',
      from: '/',
      actions: [openPage('Tokens'), clickOn((page) => page.getByText('Open as: All tokens')), downloadCsv],
      answered: hasRows('All tokens'),
    },
  ],
  [
    3,
    {
      question: 'which token replaced MKR',
      from: '/',
      actions: [press('Control+k'), type('MKR'), press('Enter')],
      answered: hasTitle('Sky'),
    },
  ],
  [
    4,
    {
      question: 'the price of a token over 90 days',
      from: '/',
      actions: [
        press('Control+k'),
        type('UNI'),
        press('Enter'),
        clickOn((page) => page.getByRole('button', { name: '90d', exact: true })),
      ],
      answered: async (page) => {
        await page.waitForURL(/range=90d/)
        await region(page, 'Price').locator('.chart[data-drawn]').waitFor()
      },
    },
  ],
  [
    2,
    {
      question: 'which DAOs earn most for their treasury',
      from: '/daos',
      actions: [
        clickOn((page) => page.getByRole('button', { name: 'Fees and treasuries', exact: true })),
        clickOn((page) => region(page, 'Fees and treasuries').getByRole('button', { name: 'Fees / treasury' })),
      ],
      answered: hasRows('Fees and treasuries'),
    },
  ],
  [
    2,
    {
      question: 'fees and treasuries of all DAOs in SQL, to export',
      from: '/daos',
      actions: [
        clickOn((page) => page.getByRole('button', { name: 'Fees and treasuries', exact: true })),
        clickOn((page) => page.getByRole('link', { name: 'The same table in SQL' })),
      ],
      answered: async (page) => {
        await page.waitForURL(/\/sql\?q=.*FULL/)
        await region(page, 'Nothing is published').waitFor()
      },
      // The demo of the tests has no catalog.
      logged: ['Failed to load resource: the server responded with a status of 404 (Not Found)'],
    },
  ],
  [
    2,
    {
      question: 'what moved the Index in 90 days',
      from: '/',
      actions: [
        openPage('Index'),
        clickOn((page) => region(page, 'Composition').getByRole('button', { name: '90 d', exact: true })),
      ],
      answered: (page) => page.getByRole('columnheader', { name: 'Contribution, 90 d' }).waitFor(),
    },
  ],
  [
    1,
    {
      question: 'all deadlines of votes as a calendar',
      from: '/',
      actions: [openPage('Governance')],
      answered: async (page) => {
        const href = await page.getByRole('link', { name: 'Deadlines as a calendar' }).getAttribute('href')
        const calendar = await page.request.get(new URL(href ?? '', new URL('/', page.url())).href)
        expect(await calendar.text()).toContain('BEGIN:VEVENT')
      },
    },
  ],
  [
    3,
    {
      question: 'a proposal by a word of its title',
      from: '/',
      actions: [
        press('Control+k'),
        type('budget'),
        clickOn((page) => page.getByRole('option', { name: /Proposal$/ }).first()),
      ],
      answered: hasTitle('budget'),
    },
  ],
  [
    3,
    {
      question: 'the ratings of DAOs',
      from: '/',
      actions: [
        press('Control+k'),
        type('rating'),
        clickOn((page) => page.getByRole('option', { name: /^Ratings of DAOs.*Page$/ })),
      ],
      answered: hasRows('DAOs with a rating'),
    },
  ],
  [
    3,
    {
      question: 'the page of treasuries, by a word',
      from: '/',
      actions: [
        press('Control+k'),
        type('treasuries by'),
        clickOn((page) => page.getByRole('option', { name: /^Treasuries by kind of asset/ })),
      ],
      answered: hasRows('Treasuries by kind of asset'),
    },
  ],
  [
    1,
    {
      question: 'which members the Index had before',
      from: '/',
      actions: [openPage('Index')],
      answered: hasRows('Past compositions'),
    },
  ],
  [
    1,
    {
      question: 'a picture of a price for a message',
      from: '/tokens',
      actions: [followLink('All tokens', 'Uniswap')],
      answered: async (page) => {
        await hasTitle('Uniswap')(page)
        // A site that shows a link loads the document of its address.
        const document = await (await page.request.get(page.url())).text()
        const image = /property="og:image" content="([^"]+)"/.exec(document)?.[1] ?? ''
        const picture = await page.request.get(new URL(new URL(image).pathname, page.url()).href)
        expect(picture.headers()['content-type']).toBe('image/png')
      },
    },
  ],
  [
    4,
    {
      question: 'the price of a token at one time, to cite',
      from: '/tokens',
      actions: [
        followLink('All tokens', 'Uniswap'),
        (page) => region(page, 'Price').locator('.chart[data-drawn]').focus(),
        press('Home'),
        press('Enter'),
      ],
      answered: (page) => page.getByRole('button', { name: 'Copy citation' }).waitFor(),
    },
  ],
  [
    3,
    {
      question: 'all votes of a delegate as CSV',
      from: '/daos/893ec80ae8dcc44e6c2a0b49?tab=governance',
      actions: [
        clickOn((page) => region(page, 'Top delegates').getByRole('link').first()),
        clickOn((page) => page.getByText('Open as: Votes in Uniswap')),
        downloadCsv,
      ],
      answered: hasRows('Votes in Uniswap'),
    },
  ],
  [
    1,
    {
      question: 'a first comparison of tokens',
      from: '/compare',
      actions: [clickOn((page) => page.getByRole('link', { name: /^Compare .*, / }))],
      answered: (page) => region(page, 'Side by side').locator('tbody tr').nth(2).waitFor(),
    },
  ],
  [
    1,
    {
      question: 'a token beside one of the largest tokens',
      from: '/compare?ids=a00a15074c647764fac27d6c',
      actions: [clickOn((page) => page.locator('.links', { hasText: /^Add/ }).getByRole('link').first())],
      answered: (page) => region(page, 'Side by side').locator('tbody tr').nth(1).waitFor(),
    },
  ],
  [
    4,
    {
      question: 'two tokens side by side',
      from: '/',
      actions: [openPage('Compare'), clickOn((page) => page.getByLabel('Add')), type('uniswap, aave'), press('Enter')],
      answered: (page) => region(page, 'Side by side').locator('tbody tr').nth(1).waitFor(),
    },
  ],
]

describe.skipIf(!hasBrowser)('tasks of readers', () => {
  const demo = serveDemo()
  const { open } = demo
  it.each(TASKS.map(([actions, task]) => ({ ...task, steps: task.actions, actions })))(
    'takes $actions actions: $question',
    async ({ actions, from, screen, steps, answered, logged = [] }) => {
      const { page, wrong, close } = await open(from, { screen: screen ?? 'desktop' })
      for (const act of steps) await act(page)
      await answered(page)
      expect(steps).toHaveLength(actions)
      expect(wrong).toEqual(logged)
      await close()
    },
  )
})
