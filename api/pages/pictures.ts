import { createRequire } from 'node:module'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { RequestHandler } from 'express'
import { LRUCache } from 'lru-cache'
import { z } from 'zod'
import type { Admission, ClientKey } from '../admission/admission.ts'
import { parseParameters, readQuery } from '../parameters/parse.ts'
import { Problem } from '../problem/problem.ts'
import type { AppContext } from '../route/define-route.ts'
import { daoKind, tokenKind } from '../route/entities.ts'
import type { RequestContext } from '../route/request-context.ts'
import { chart24hRoute } from '../routes/charts/24h.ts'
import { treasuryRoute } from '../routes/daos/treasury.ts'
import { indexHistoricRoute } from '../routes/index/historic.ts'
import { tokensRoute } from '../routes/tokens.ts'
import type { Compression } from '../serving/compression.ts'
import type { ReadyAnswer } from '../serving/ready-answer.ts'
import { sendReady } from '../serving/respond.ts'
import type { Serving } from '../serving/serve.ts'
import { createDisconnectSignal, createSingleFlight, inTurn } from '../single-flight/single-flight.ts'
import { toAnswer, toPolicy } from './page-handler.ts'
import { CHART_SIZE, drawDao, drawIndex, drawToken } from './picture-cards.ts'

const require = createRequire(import.meta.url)
const FAMILY = 'Inter'
const FONTS = [
  require.resolve('@fontsource/inter/files/inter-latin-500-normal.woff2'),
  require.resolve('@fontsource/inter/files/inter-latin-ext-500-normal.woff2'),
  require.resolve('@fontsource/inter/files/inter-greek-500-normal.woff2'),
  require.resolve('@fontsource/inter/files/inter-cyrillic-500-normal.woff2'),
]

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
      running ??= start()
      clearTimeout(running.idle)
      running.worker.ref()
      count += 1
      waiting.set(count, { resolve, reject })
      running.worker.postMessage({ id: count, svg })
    })
}

const PICTURES = /^\/og\/(?:(tokens|daos)\/([0-9a-f]{24})|(index))\.png$/

/** Draws a picture as SVG on behalf of a client. */
type Draw = (
  request: { readonly client: ClientKey; readonly requestId: string },
  signal: AbortSignal,
) => Promise<string>

type PictureContext = Pick<AppContext, 'config' | 'registry' | 'now'>

const number = z.number().nullable()
const tokenAnswer = z.array(z.object({ financialData: z.object({ price: number, percentChange24h: number }) }))
const treasuryAnswer = z.array(z.object({ treasuryData: z.object({ valueUsd: number, percentChange30d: number }) }))
const indexAnswer = z.array(z.object({ valueUsd: number, createdAt: z.string() }))

/** The newest value of the Index, and its first ones of the last 30 days. */
const NEWEST = '/data/index/historic?interval=5m&order=desc&limit=1'
const FIRST = '/data/index/historic?interval=1d&period=30&limit=1'

/**
 * Returns how the picture of the Index, a token or a DAO is drawn; undefined for unknown ids. All numbers are answers of
 * routes, so that they are made from cached data.
 */
function findDraw({ config, registry }: PictureContext, serving: Serving, kind: string, id: string): Draw | undefined {
  const isDemo = config.mode === 'demo'
  const read = async <T>(schema: z.ZodType<T>, ...[route, ...request]: Parameters<Serving['answer']>) =>
    schema.parse(JSON.parse((await serving.answer(route, ...request)).body.toString()))
  if (kind === 'index')
    return async (request, signal) => {
      const readPoint = (url: string) => read(indexAnswer, indexHistoricRoute, { ...request, url }, signal)
      const [[newest], [first]] = await Promise.all([readPoint(NEWEST), readPoint(FIRST)])
      return drawIndex({ newest, first, isDemo })
    }
  const token = kind === 'tokens' ? tokenKind.byId(registry, id) : undefined
  if (token !== undefined)
    return async (request, signal) => {
      const chart = { ...request, url: `/charts/24h/${id}.svg?${CHART_SIZE}`, inPath: { tokenId: id } }
      const [{ body }, [record]] = await Promise.all([
        serving.answer(chart24hRoute, chart, signal),
        read(tokenAnswer, tokensRoute, { ...request, url: `/data/tokens?id=${id}` }, signal),
      ])
      return drawToken({ ...token, quote: record?.financialData, chart: body.toString(), isDemo })
    }
  const dao = kind === 'daos' ? daoKind.byId(registry, id) : undefined
  if (dao === undefined) return undefined
  return async (request, signal) => {
    const [record] = await read(
      treasuryAnswer,
      treasuryRoute,
      { ...request, url: `/data/daos/treasury?id=${id}` },
      signal,
    )
    return drawDao({ ...dao, treasury: record?.treasuryData, isDemo })
  }
}

interface Picture {
  readonly svg: string
  readonly answer: ReadyAnswer
  /** Unix milliseconds. */
  readonly checkedAt: number
}

/** How long a picture is sent without reading its data again. */
const HOLDS_MS = 300_000
/** Pictures have about 20 kB, so more than a thousand fit. */
const CACHE_BYTES = 32 * 1024 * 1024

const toPictureAnswer = (png: Buffer) =>
  toAnswer({ type: 'image/png', make: () => png, cacheControl: 'public, max-age=3600' }, toPolicy('none'))

/** Pictures by path. One is drawn again only if its document has changed. */
function createPictureCache({ pictures }: Pick<Admission, 'pictures'>, now: () => number) {
  const render = createRenderer()
  const singleFlight = createSingleFlight<Picture>(pictures)
  const cache = new LRUCache<string, Picture>({
    maxSize: CACHE_BYTES,
    sizeCalculation: ({ svg, answer }) => svg.length + answer.size,
  })
  return {
    find: (path: string): Picture | undefined => {
      const cached = cache.get(path)
      return cached !== undefined && Math.abs(now() - cached.checkedAt) < HOLDS_MS ? cached : undefined
    },
    /** Reads the data and draws in one slot of the queue. */
    make: (path: string, client: ClientKey, toSvg: (signal: AbortSignal) => Promise<string>, signal: AbortSignal) => {
      const work = inTurn(async (abandoned) => {
        const checkedAt = now()
        const svg = await toSvg(abandoned)
        const cached = cache.get(path)
        const answer = cached?.svg === svg ? cached.answer : toPictureAnswer(await render(svg))
        const picture = { svg, answer, checkedAt }
        cache.set(path, picture)
        return picture
      })
      return singleFlight.share(path, work, { client }, signal).result
    },
  }
}

/**
 * `/og/index.png`, `/og/tokens/<id>.png` and `/og/daos/<id>.png`: pictures for sites that show links and refuse SVG, drawn on their first
 * request.
 */
export function createPictures(
  context: PictureContext,
  options: {
    readonly serving: Serving
    readonly admission: Pick<Admission, 'clientKeyOf' | 'pictures'>
    readonly compression: Compression
  },
): RequestHandler {
  const { serving, admission, compression } = options
  const pictures = createPictureCache(admission, context.now)
  return async (request, response, next) => {
    const found = PICTURES.exec(request.path)
    if (found === null) return next()
    const [kind = 'index', id = ''] = found.slice(1)
    parseParameters({}, readQuery(request.originalUrl))
    const { path } = request
    const draw = findDraw(context, serving, kind, id)
    if (draw === undefined)
      throw new Problem('not_found', `There is no ${kind === 'tokens' ? 'token' : 'DAO'} with this id.`)
    const { requestId, startedAt, caller } = response.locals as RequestContext
    const cached = pictures.find(path)
    const client = admission.clientKeyOf(request)
    const toSvg = (signal: AbortSignal) => draw({ client, requestId }, signal)
    const picture = cached ?? (await pictures.make(path, client, toSvg, createDisconnectSignal(response)()))
    const sending = { now: context.now(), from: cached === undefined ? 'made' : 'cache', compression }
    await sendReady({ request, response, requestId, startedAt, caller, extra: [] }, picture.answer, sending)
  }
}
