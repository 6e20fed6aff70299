import { toInitials, toMark } from '../svg/mark.ts'
import { toXml } from '../svg/sparkline.ts'

/** Size of a picture, which sites that show a link expect. */
export const [PICTURE_WIDTH, PICTURE_HEIGHT] = [1200, 630]

/** The query of the chart in the picture of a token. */
export const CHART_SIZE = new URLSearchParams({ width: '1080', height: '190', theme: 'light' })

const [TEXT, SOFT, RISING, FALLING, NOTICE] = ['#15191f', '#59626f', '#127039', '#b3201f', '#7a4b00']

const MOST_LETTERS = 24
const shorten = (text: string) => (text.length > MOST_LETTERS ? `${text.slice(0, MOST_LETTERS - 1)}…` : text)

const text = (x: number, y: number, size: number, colour: string, content: string) =>
  `<text x="${x}" y="${y}" font-size="${size}" fill="${colour}">${toXml(content)}</text>`

const DOLLARS = { style: 'currency', currency: 'USD' } as const
const LARGE = new Intl.NumberFormat('en', {
  ...DOLLARS,
  notation: 'compact',
  minimumFractionDigits: 2,
  maximumFractionDigits: 2,
})
const CENTS = new Intl.NumberFormat('en', DOLLARS)
const SMALL = new Intl.NumberFormat('en', { ...DOLLARS, maximumSignificantDigits: 4 })
const CHANGE = new Intl.NumberFormat('en', {
  minimumFractionDigits: 2,
  maximumFractionDigits: 2,
  signDisplay: 'exceptZero',
})

function toUsd(value: number): string {
  if (Math.abs(value) >= 1e6) return LARGE.format(value)
  return (Math.abs(value) >= 1 ? CENTS : SMALL).format(value)
}

/** A value in USD with its change in percent below; nothing if the value is unknown. */
function toNumber(valueUsd: number | null | undefined, change: number | null | undefined, period: string): string {
  if (valueUsd === null || valueUsd === undefined) return ''
  const value = text(60, 300, 84, TEXT, toUsd(valueUsd))
  if (change === null || change === undefined) return value
  const colour = change < 0 ? FALLING : RISING
  return `${value}${text(620, 300, 40, colour, `${CHANGE.format(change)} % ${period}`)}`
}

interface Shown {
  readonly id: string
  readonly name: string
  readonly isDemo: boolean
}

/** A card with a mark, a name and a line about it; below, a number, a drawing or words. */
const toCard = (card: Shown & { readonly letters: string; readonly about: string; readonly below: string }) =>
  [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${PICTURE_WIDTH}" height="${PICTURE_HEIGHT}">`,
    '<rect width="100%" height="100%" fill="#ffffff"/>',
    `<g transform="translate(60 60) scale(2)">${toMark(card.id, card.name, card.letters)}</g>`,
    text(220, 118, 64, TEXT, shorten(card.name)),
    text(220, 172, 34, SOFT, card.about),
    card.below,
    text(60, 590, 30, SOFT, 'dao-data'),
    card.isDemo ? text(220, 590, 30, NOTICE, 'DEMO – all numbers are simulated') : '',
    '</svg>',
  ].join('')

/** The picture of a token: its price, and `chart`, an SVG of `CHART_SIZE`. */
export function drawToken(
  token: Shown & {
    readonly symbol: string
    readonly quote: { readonly price: number | null; readonly percentChange24h: number | null } | undefined
    readonly chart: string
  },
): string {
  const { symbol, quote, chart } = token
  const value = toNumber(quote?.price, quote?.percentChange24h, 'in 24 hours')
  const below = `${value}<g transform="translate(60 340)">${chart}</g>`
  return toCard({ ...token, letters: symbol, about: value === '' ? symbol : `${symbol}, price`, below })
}

/** The picture of a DAO: the value of its treasury. */
export function drawDao(
  dao: Shown & {
    readonly treasury: { readonly valueUsd: number | null; readonly percentChange30d: number | null } | undefined
  },
): string {
  const value = toNumber(dao.treasury?.valueUsd, dao.treasury?.percentChange30d, 'in 30 days')
  const contents = value === '' ? 'Treasury, votes, fees and community' : 'Votes, fees and community'
  const below = `${value}${text(60, value === '' ? 300 : 400, 44, SOFT, contents)}`
  return toCard({ ...dao, letters: toInitials(dao.name), about: value === '' ? 'DAO' : 'DAO, treasury', below })
}

interface IndexValue {
  readonly valueUsd: number | null
  readonly createdAt: string
}

/** The picture of the Index: its newest value, and the change since an earlier one. */
export function drawIndex(index: {
  readonly newest: IndexValue | undefined
  readonly first: IndexValue | undefined
  readonly isDemo: boolean
}): string {
  const [to, from] = [index.newest?.valueUsd, index.first?.valueUsd]
  const change = typeof to === 'number' && typeof from === 'number' ? (to / from - 1) * 100 : null
  const below = [
    toNumber(to, change, `since ${index.first?.createdAt.slice(0, 10)}`),
    text(60, 400, 44, SOFT, 'A basket of DAO tokens: value and members'),
  ].join('')
  return toCard({ id: '0', name: 'Index', letters: 'IX', about: 'Index of DAO tokens', isDemo: index.isDemo, below })
}
