import { createRequire } from 'node:module'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { RequestHandler } from 'express'
import { LRUCache } from 'lru-cache'
import { FIXED_HEADERS, setHeaders } from '../http/headers.ts'
import { parseParameters, readQuery } from '../parameters/parse.ts'
import { readDay } from '../prices/day.ts'
import { Problem, toUnavailable } from '../problem/problem.ts'
import type { AppContext } from '../route/define-route.ts'
import { daoKind, tokenKind } from '../route/entities.ts'
import { toInitials, toMark } from '../svg/mark.ts'
import { toSparkline, toXml } from '../svg/sparkline.ts'

/** Size of a picture, which sites that show a link expect. */
export const [PICTURE_WIDTH, PICTURE_HEIGHT] = [1200, 630]

const require = createRequire(import.meta.url)
const FAMILY = 'Inter'
const FONTS = [
  require.resolve('@fontsource/inter/files/inter-latin-500-normal.woff2'),
  require.resolve('@fontsource/inter/files/inter-latin-ext-500-normal.woff2'),
  require.resolve('@fontsource/inter/files/inter-greek-500-normal.woff2'),
  require.resolve('@fontsource/inter/files/inter-cyrillic-500-normal.woff2'),
]

/** Pictures that are drawn or wait for it; each takes about a tenth of a second. */
const MOST_WAITING = 16
/** The thread has 90 MB, so it ends if no picture is requested. */
const IDLE_MS = 60_000

interface Rendered {
  readonly id: number
  readonly png?: Uint8Array
  readonly failure?: string
}

interface Waiting {
  readonly resolve: (png: Buffer) => void
  readonly reject: (error: Error) => void
}

/** Renders SVG as PNG, one at a time, in a thread that starts with the first picture. */
function createRenderer() {
  const waiting = new Map<number, Waiting>()
  let running: { readonly worker: Worker; idle?: NodeJS.Timeout } | undefined
  let count = 0

  const start = () => {
    const worker = new Worker(join(import.meta.dirname, 'assets/picture-worker.js'), {
      workerData: { wasm: require.resolve('@resvg/resvg-wasm/index_bg.wasm'), fonts: FONTS, family: FAMILY },
      execArgv: [],
    })
    const fail = (error: Error) => {
      if (running?.worker !== worker) return
      running = undefined
      for (const { reject } of waiting.values()) reject(error)
      waiting.clear()
    }
    worker.on('error', fail)
    worker.on('exit', () => fail(new Error('the thread that draws pictures has ended')))
    worker.on('message', ({ id, png, failure }: Rendered) => {
      const one = waiting.get(id)
      waiting.delete(id)
      if (png === undefined) one?.reject(new Error(`the picture was not drawn: ${failure}`))
      else one?.resolve(Buffer.from(png))
      if (waiting.size > 0 || running === undefined) return
      // The process may end while the thread is idle.
      worker.unref()
      running.idle = setTimeout(() => {
        running = undefined
        void worker.terminate()
      }, IDLE_MS).unref()
    })
    return { worker }
  }

  return (svg: string) =>
    new Promise<Buffer>((resolve, reject) => {
      if (waiting.size >= MOST_WAITING) return reject(toUnavailable('Too many pictures are being drawn.'))
      running ??= start()
      clearTimeout(running.idle)
      running.worker.ref()
      count += 1
      waiting.set(count, { resolve, reject })
      running.worker.postMessage({ id: count, svg })
    })
}

const MOST_LETTERS = 24
const shorten = (text: string) => (text.length > MOST_LETTERS ? `${text.slice(0, MOST_LETTERS - 1)}…` : text)

const text = (x: number, y: number, size: number, colour: string, content: string) =>
  `<text x="${x}" y="${y}" font-size="${size}" fill="${colour}">${toXml(content)}</text>`

/** A card with a mark, a name and a line about it; below, a drawing or words. */
function toCard(card: { mark: string; name: string; about: string; below: string; isDemo: boolean }): string {
  const { mark, name, about, below, isDemo } = card
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${PICTURE_WIDTH}" height="${PICTURE_HEIGHT}">`,
    '<rect width="100%" height="100%" fill="#ffffff"/>',
    `<g transform="translate(60 60) scale(2)">${mark}</g>`,
    text(220, 118, 64, '#15191f', shorten(name)),
    text(220, 172, 34, '#59626f', about),
    below,
    text(60, 590, 30, '#59626f', 'dao-data'),
    isDemo ? text(220, 590, 30, '#7a4b00', 'DEMO – all numbers are simulated') : '',
    '</svg>',
  ].join('')
}

const PICTURES = /^\/og\/(tokens|daos)\/([0-9a-f]{24})\.png$/

/** The SVG of a token or a DAO; undefined for unknown ids. */
async function toSvg({ config, registry, db, now }: PictureContext, kind: string, id: string) {
  const isDemo = config.mode === 'demo'
  const token = kind === 'tokens' ? tokenKind.byId(registry, id) : undefined
  if (token !== undefined) {
    const { name, symbol } = token
    const day = await readDay(db, token, now())
    const chart = toSparkline(name, day, { width: 1080, height: 280, theme: 'light' })
    const last = day.points.at(-1)
    const about = last === undefined ? symbol : `${symbol}, last 24 hours`
    const below = `<g transform="translate(60 230)">${chart}</g>`
    return toCard({ mark: toMark(id, name, symbol), name, about, below, isDemo })
  }
  const dao = kind === 'daos' ? daoKind.byId(registry, id) : undefined
  if (dao === undefined) return undefined
  const below = text(60, 330, 44, '#15191f', 'Treasury, votes, fees and community')
  return toCard({ mark: toMark(id, dao.name, toInitials(dao.name)), name: dao.name, about: 'DAO', below, isDemo })
}

type PictureContext = Pick<AppContext, 'config' | 'registry' | 'db' | 'now'>

/**
 * `/og/tokens/<id>.png` and `/og/daos/<id>.png`: pictures for sites that show links and refuse SVG. Drawn on demand, and
 * cached for some minutes.
 */
export function createPictures(context: PictureContext): RequestHandler {
  const render = createRenderer()
  const cache = new LRUCache<string, Promise<Buffer | undefined>>({ max: 200, ttl: 300_000 })
  const draw = async (kind: string, id: string) => {
    const svg = await toSvg(context, kind, id)
    return svg === undefined ? undefined : render(svg)
  }
  return async (request, response, next) => {
    const [, kind = '', id = ''] = PICTURES.exec(request.path) ?? []
    if (kind === '') return next()
    parseParameters({}, readQuery(request.originalUrl))
    const { path } = request
    const cached = cache.get(path)
    const drawn = cached ?? draw(kind, id)
    // A hit must not extend the life of the picture.
    if (cached === undefined) cache.set(path, drawn)
    const png = await drawn.catch((error: unknown) => {
      cache.delete(path)
      throw error
    })
    if (png === undefined) {
      cache.delete(path)
      throw new Problem('not_found', `There is no ${kind === 'tokens' ? 'token' : 'DAO'} with this id.`)
    }
    const { requestId } = response.locals as { readonly requestId: string }
    setHeaders(response, [
      ...FIXED_HEADERS,
      ...['X-Request-Id', requestId, 'Content-Type', 'image/png', 'Content-Length', String(png.length)],
      ...['Cache-Control', 'public, max-age=3600'],
    ])
    response.end(request.method === 'HEAD' ? undefined : png)
  }
}
