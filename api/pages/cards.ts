import type { RequestHandler } from 'express'
import { z } from 'zod'
import { FIXED_HEADERS, setHeaders } from '../http/headers.ts'
import { oneOf } from '../parameters/kinds.ts'
import { parseParameters, readQuery } from '../parameters/parse.ts'
import { Problem } from '../problem/problem.ts'
import type { AppContext } from '../route/define-route.ts'
import { daoKind, tokenKind } from '../route/entities.ts'
import type { RequestContext } from '../route/request-context.ts'
import { restrictCaching } from '../serving/respond.ts'
import { THEME_NAMES } from '../svg/sparkline.ts'
import { toHtml } from './markdown.ts'
import { PICTURE_HEIGHT, PICTURE_WIDTH } from './picture-cards.ts'

/** How other sites show a link to a page of the explorer. */
export interface Card {
  readonly title: string
  readonly description: string
  readonly url: string
  readonly image: string
  /** URL of the description as oEmbed. */
  readonly oembed: string
}

const PAGE = /^\/(tokens|daos)\/([0-9a-f]{24})$/

const SIMULATED = 'DEMO: all numbers are simulated. '

/** The card of the Index's page, or of a token's or DAO's; undefined for other pages and unknown ids. */
export function findCard(
  { config, registry }: Pick<AppContext, 'config' | 'registry'>,
  path: string,
): Card | undefined {
  const [, kind, id = ''] = PAGE.exec(path) ?? []
  const { publicUrl } = config.api
  const notice = config.mode === 'demo' ? SIMULATED : ''
  const url = `${publicUrl}${path}`
  const image = `${publicUrl}/og${path}.png`
  const more = { url, image, oembed: `${publicUrl}/oembed?url=${encodeURIComponent(url)}` }
  if (path === '/index')
    return {
      ...more,
      title: 'Index – dao-data',
      description: `${notice}Value, members and methodology of an index of DAO tokens.`,
    }
  const token = kind === 'tokens' ? tokenKind.byId(registry, id) : undefined
  if (token !== undefined)
    return {
      ...more,
      title: `${token.name} (${token.symbol}) – dao-data`,
      description: `${notice}Price, market cap, holders and trades of ${token.name}.`,
    }
  const dao = kind === 'daos' ? daoKind.byId(registry, id) : undefined
  if (dao === undefined) return undefined
  return {
    ...more,
    title: `${dao.name} – dao-data`,
    description: `${notice}Treasury, votes, fees and community of ${dao.name}.`,
  }
}

/** The title of a document, and its meta data for Open Graph, Twitter and oEmbed. */
export function toCardHtml({ title, description, url, image, oembed }: Card): string {
  const [name, text] = [toHtml(title), toHtml(description)]
  return `<title>${name}</title>
<meta property="og:type" content="website">
<meta property="og:site_name" content="dao-data">
<meta property="og:title" content="${name}">
<meta property="og:description" content="${text}">
<meta property="og:url" content="${toHtml(url)}">
<meta property="og:image" content="${toHtml(image)}">
<meta property="og:image:type" content="image/png">
<meta property="og:image:width" content="${PICTURE_WIDTH}">
<meta property="og:image:height" content="${PICTURE_HEIGHT}">
<meta property="og:image:alt" content="${name}">
<meta name="twitter:card" content="summary_large_image">
<meta name="twitter:title" content="${name}">
<meta name="twitter:description" content="${text}">
<meta name="twitter:image" content="${toHtml(image)}">
<link rel="alternate" type="application/json+oembed" title="${name}" href="${toHtml(oembed)}">`
}

/** The size of a frame, unless the client allows less: oEmbed has no frame larger than `maxwidth` and `maxheight`. */
const [WIDTH, HEIGHT] = [640, 420]

const RULE = 'must be a whole number of pixels, at least 1'
const pixels = z.int(RULE).min(1, RULE).optional()
const SHAPE = {
  url: z.url('must be the URL of a page with a chart'),
  maxwidth: pixels,
  maxheight: pixels,
  format: oneOf(['json'], 'Format of the description.', 'json').optional(),
}

/** The parameters of a page that its chart understands too. */
const PASSED = { metric: /^[a-z-]{1,20}$/, range: /^(?:24h|7d|30d|90d|1y|all)$/, interval: /^(?:5m|30m|1h|4h|1d|7d)$/ }
const THEME = new RegExp(`^(?:${THEME_NAMES.join('|')})$`)

/** Describes the chart of a page as oEmbed 1.0: an HTML frame. Such a page is the Index, a token or a DAO, or its embedded form. */
function toOembed(context: Pick<AppContext, 'config' | 'registry'>, query: z.infer<z.ZodObject<typeof SHAPE>>) {
  const { publicUrl } = context.config.api
  const page = new URL(query.url)
  const root = new URL(publicUrl)
  const prefix = root.pathname.replace(/\/$/, '')
  const isOwn = page.origin === root.origin && page.pathname.startsWith(`${prefix}/`)
  const path = page.pathname.slice(prefix.length).replace(/^\/embed(?=\/)/, '')
  const card = findCard(context, path)
  if (!isOwn || card === undefined)
    throw new Problem(
      'not_found',
      `No page with a chart has this URL: expected ${publicUrl}/tokens/<id>, /daos/<id> or /index.`,
      {
        param: 'url',
      },
    )
  const { title } = card
  const passed = Object.entries({ ...PASSED, theme: THEME }).flatMap(([name, pattern]) => {
    const value = page.searchParams.get(name)
    return value !== null && pattern.test(value) ? [[name, value] as [string, string]] : []
  })
  const parameters = new URLSearchParams(passed).toString()
  const source = `${publicUrl}/embed${path}${parameters === '' ? '' : `?${parameters}`}`
  const width = Math.min(WIDTH, query.maxwidth ?? WIDTH)
  const height = Math.min(HEIGHT, query.maxheight ?? HEIGHT)
  const html = `<iframe src="${toHtml(source)}" title="${toHtml(title)}" width="${width}" height="${height}" style="border:0" loading="lazy"></iframe>`
  return {
    version: '1.0',
    type: 'rich',
    provider_name: 'dao-data',
    provider_url: publicUrl,
    title,
    html,
    width,
    height,
  }
}

/** `/oembed?url=`: how sites show a link to a page with a chart. */
export const createOembed =
  (context: Pick<AppContext, 'config' | 'registry'>): RequestHandler =>
  (request, response, next) => {
    if (request.path !== '/oembed') return next()
    const answer = toOembed(context, parseParameters(SHAPE, readQuery(request.originalUrl)))
    const { requestId, caller } = response.locals as Pick<RequestContext, 'requestId' | 'caller'>
    setHeaders(response, [
      ...FIXED_HEADERS,
      ...['X-Request-Id', requestId, 'Content-Type', 'application/json; charset=utf-8'],
      ...['Cache-Control', restrictCaching(caller, 'public, max-age=3600')],
    ])
    response.end(request.method === 'HEAD' ? undefined : JSON.stringify(answer))
  }
