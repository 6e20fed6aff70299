import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { z } from 'zod'
import type { Config } from '../../shared/config/config.ts'
import { DataError, toReason } from '../../shared/errors.ts'
import { toBatches } from '../../shared/group-by.ts'
import { type Attribution, attributionFile, type Logo, logosFolder, readAttribution } from '../../shared/logos.ts'
import type { OnPart } from '../../shared/progress-bar.ts'
import { createProxiedFetch, type Fetch } from '../../shared/proxied-fetch.ts'
import type { Token } from '../../shared/registry/entities.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import { replaceFile } from '../../shared/replace-file.ts'
import type { HttpClients } from '../http/client.ts'
import { asSent, checkAnswer, listOf } from '../providers/answer.ts'
import { openCoinGecko } from '../providers/coingecko/client.ts'
import { MOST_BYTES, readImage } from './image.ts'

const SOURCE = {
  source: 'CoinGecko',
  homepage: 'https://www.coingecko.com',
  notice: 'Logos are trademarks of their owners. CoinGecko provides the images.',
} as const

/** Hosts of the provider's images: this one and those below it. */
const IMAGE_HOST = 'coingecko.com'
const DOWNLOAD_MS = 20_000

interface Options {
  readonly config: Config
  readonly registry: Registry
  readonly http: Pick<HttpClients, 'open'>
  /** Whether stored logos are fetched again. */
  readonly again: boolean
  readonly signal: AbortSignal
  readonly onPart?: OnPart
}

/** The result of fetching the logos of the tokens; each rejection names its token. */
export interface LogoReport {
  readonly folder: string
  readonly stored: number
  readonly unchanged: number
  /** Tokens without an image at the provider. */
  readonly without: number
  readonly rejected: readonly string[]
}

const MARKETS = '/coins/markets'
const COINS_PER_PAGE = 250
/** Coins/markets (docs/providers.md, section 2). */
const marketsAnswer = listOf(z.object({ id: asSent, image: asSent }))

/** Fetches the address of each coin's image, by the coin's id. */
async function fetchAddresses(tokens: readonly Token[], options: Options): Promise<Map<string, string>> {
  const client = openCoinGecko(options)
  const addresses = new Map<string, string>()
  for (const batch of toBatches(tokens, COINS_PER_PAGE)) {
    const ids = batch.map(({ coingeckoId }) => coingeckoId).join(',')
    const query = { vs_currency: 'usd', ids, per_page: COINS_PER_PAGE }
    const answer = await client.json({ path: MARKETS, query, signal: options.signal })
    for (const coin of checkAnswer(marketsAnswer, answer, { provider: 'coingecko', path: MARKETS })) {
      if ('id' in coin && typeof coin.id === 'string' && typeof coin.image === 'string' && coin.image !== '')
        addresses.set(coin.id, coin.image)
    }
  }
  return addresses
}

/**
 * The address of the small image, 50 pixels wide. An address on another host could make this machine send requests within its
 * own network.
 * @throws DataError `provider_malformed` if the address is not on a host of the provider.
 */
function toAddress(text: string, baseUrl: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null
  const isImageHost = url?.protocol === 'https:' && url.port === '' && `.${url.hostname}`.endsWith(`.${IMAGE_HOST}`)
  if (url === null || !(isImageHost || url.origin === new URL(baseUrl).origin))
    throw new DataError('provider_malformed', 'the address is not on a host of the provider')
  url.pathname = url.pathname.replace('/large/', '/small/')
  url.search = ''
  return url
}

/** Downloads at most the largest number of bytes, without redirects. */
async function download(url: URL, fetchImage: Fetch, signal: AbortSignal): Promise<Buffer> {
  const init = {
    headers: { accept: 'image/png, image/webp, image/jpeg', 'user-agent': 'dao-data' },
    redirect: 'error',
    signal: AbortSignal.any([signal, AbortSignal.timeout(DOWNLOAD_MS)]),
  } as const
  const response = await fetchImage(url, init)
  if (!response.ok) throw new DataError('provider_rejected', `status ${response.status}`)
  const type = response.headers.get('content-type') ?? 'no type'
  if (!/^image\/(?:png|webp|jpeg)\b/.test(type)) throw new DataError('provider_malformed', `content type ${type}`)
  const parts: Uint8Array[] = []
  let bytes = 0
  for await (const part of response.body ?? []) {
    parts.push(part)
    bytes += part.byteLength
    // Leaving the loop cancels the rest of the download.
    if (bytes > MOST_BYTES) throw new DataError('provider_malformed', `over ${MOST_BYTES} bytes`)
  }
  return Buffer.concat(parts)
}

/** Stores an image, so that concurrent readers see the old or the new one. */
function store(folder: string, file: string, bytes: Buffer): void {
  const next = join(folder, `${file}.new`)
  writeFileSync(next, bytes)
  renameSync(next, join(folder, file))
}

const toName = ({ name, symbol }: Token) => `${name} (${symbol})`

/**
 * Fetches the logos of all tokens into the data folder, with a file that names their sources. Stored logos are only
 * fetched again if their address has changed or `again` is set; if a new one is rejected, the stored one stays.
 */
export async function fetchLogos(options: Options): Promise<LogoReport> {
  const { config, registry, again, signal, onPart } = options
  const folder = logosFolder(config.dataDir)
  mkdirSync(folder, { recursive: true })
  const before = readAttribution(folder)?.logos ?? {}
  const tokens = registry.tokens.filter(({ coingeckoId }) => coingeckoId !== null)
  const addresses = await fetchAddresses(tokens, options)
  const fetchImage: Fetch = createProxiedFetch(config.proxy) ?? fetch
  const logos: Record<string, Logo> = {}
  const rejected: string[] = []
  let [stored, unchanged] = [0, 0]
  for (const [at, token] of tokens.entries()) {
    const address = addresses.get(token.coingeckoId ?? '')
    const existing = before[token.id]
    const isStored = existing !== undefined && existsSync(join(folder, existing.file))
    if (address !== undefined) {
      try {
        const url = toAddress(address, config.providers.coingecko.baseUrl)
        if (isStored && existing.url === url.href && !again) unchanged += 1
        else {
          const bytes = await download(url, fetchImage, signal)
          const { type, width, height } = readImage(bytes)
          const file = `${token.id}.${type}`
          store(folder, file, bytes)
          logos[token.id] = { name: toName(token), url: url.href, file, width, height, bytes: bytes.length }
          stored += 1
        }
      } catch (error) {
        signal.throwIfAborted()
        rejected.push(
          `${toName(token)}: ${address.slice(0, 200)}: ${toReason(error instanceof TypeError ? error.cause : error)}`,
        )
      }
    }
    if (isStored) logos[token.id] ??= existing
    onPart?.(at + 1, tokens.length)
  }
  write(folder, { ...SOURCE, logos })
  return { folder, stored, unchanged, rejected, without: tokens.length - addresses.size }
}

/** Writes the sources, then removes files of logos that are no longer listed. */
function write(folder: string, attribution: Attribution): void {
  const file = attributionFile(folder)
  replaceFile(file, () => `${JSON.stringify(attribution, null, 2)}\n`, { code: 'config' })
  const listed = new Set([basename(file), ...Object.values(attribution.logos).map((logo) => logo.file)])
  for (const name of readdirSync(folder)) if (!listed.has(name)) rmSync(join(folder, name), { force: true })
}
