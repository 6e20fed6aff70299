import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { parseConfig } from '../../shared/config/config.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { createHttpClients } from '../../workers/http/client.ts'
import { fetchLogos } from '../../workers/logos/fetch-logos.ts'
import { createHandFeed, startApi } from '../support/api.ts'
import { noDatabase } from '../support/no-database.ts'
import { silent } from '../support/silent.ts'
import { createUpstream, type Upstream } from '../upstream/server.ts'
import { toStandInSettings } from '../upstream/settings.ts'

const all = loadRegistry()
const tokens = all.tokens.filter(({ symbol }) => ['UNI', 'AAVE', 'COMP'].includes(symbol))
const registry = { ...all, tokens }
const [uni] = tokens.filter(({ symbol }) => symbol === 'UNI')
const UNI = uni?.id ?? ''
const UNKNOWN = 'f'.repeat(24)

let upstream: Upstream
let dataDir: string
beforeAll(async () => {
  upstream = await createUpstream({ registry: all, dataDir: null })
})
afterAll(() => upstream?.close())
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'dao-data-logos-'))
})
afterEach(() => {
  upstream.faults.clear()
  rmSync(dataDir, { recursive: true, force: true })
})

const toConfig = () => parseConfig({ ...toStandInSettings(upstream.url), DATA_DIR: dataDir })

async function run(again = false) {
  const progress: string[] = []
  const report = await fetchLogos({
    ...{ config: toConfig(), registry, again, signal: new AbortController().signal },
    http: createHttpClients({ log: silent, backoffMs: 1 }),
    onPart: (done, total) => progress.push(`${done}/${total}`),
  })
  return { ...report, progress }
}

/** Calls `work` with the address of an API over the data folder. */
async function withApi(work: (url: string) => Promise<void>) {
  const api = await startApi({ config: toConfig(), db: noDatabase, registry: all, changeFeed: createHandFeed() })
  try {
    await work(api.url)
  } finally {
    await api.close()
  }
}

const versionOf = async (url: string) =>
  /<meta name="logos" content="([\w-]+)">/.exec(await (await fetch(`${url}/tokens`)).text())?.[1]

describe('npm run logos', () => {
  it('stores the logo of each token with its source, and fetches no stored logo again', async () => {
    const first = await run()
    expect(first).toMatchObject({ stored: 3, unchanged: 0, without: 0, rejected: [] })
    expect(first.progress).toEqual(['1/3', '2/3', '3/3'])
    const files = readdirSync(first.folder)
    expect(files.sort()).toEqual([...tokens.map(({ id }) => `${id}.png`), 'attribution.json'].sort())
    const text = readFileSync(join(first.folder, 'attribution.json'), 'utf8')
    expect(JSON.parse(text)).toMatchObject({
      source: 'CoinGecko',
      notice: expect.stringContaining('trademarks'),
      logos: {
        [UNI]: {
          ...{ name: 'Uniswap (UNI)', file: `${UNI}.png`, width: 50, height: 50 },
          url: `${upstream.url}/coingecko/coins/images/uniswap/small/uniswap.png`,
        },
      },
    })
    const requested = upstream.requests.count('coingecko', '/coins/images/')
    expect(await run()).toMatchObject({ stored: 0, unchanged: 3 })
    expect(upstream.requests.count('coingecko', '/coins/images/')).toBe(requested)
    expect(readFileSync(join(first.folder, 'attribution.json'), 'utf8')).toBe(text)
    rmSync(join(first.folder, `${UNI}.png`))
    expect(await run()).toMatchObject({ stored: 1, unchanged: 2 })
    expect(await run(true)).toMatchObject({ stored: 3, unchanged: 0 })
  })

  it.each([
    ['a page instead of an image', { kind: 'content-type' }, /content type text\/html/],
    ['an error', { kind: 'status', status: 404 }, /status 404/],
    ['half of an image', { kind: 'cut' }, /the PNG is truncated/],
  ] as const)('rejects %s, names the token, and stores the others', async (_what, fault, reason) => {
    upstream.faults.set('coingecko', fault, { match: '/images/uniswap/' })
    const { folder, stored, rejected } = await run()
    expect(stored).toBe(2)
    expect(rejected).toEqual([expect.stringMatching(/^Uniswap \(UNI\): http/)])
    expect(rejected[0]).toMatch(reason)
    expect(readdirSync(folder)).not.toContain(`${UNI}.png`)
    upstream.faults.clear()
    expect(await run()).toMatchObject({ stored: 1, unchanged: 2, rejected: [] })
    // A stored logo stays if its successor is rejected.
    upstream.faults.set('coingecko', fault, { match: '/images/uniswap/' })
    expect(await run(true)).toMatchObject({ stored: 2 })
    expect(readdirSync(folder)).toContain(`${UNI}.png`)
  })

  it.each(['http://169.254.169.254/large/x.png', 'https://coingecko.com.example/x.png', 'file:///etc/passwd', 'x'])(
    'rejects the address %s without a request',
    async (value) => {
      upstream.faults.set('coingecko', { kind: 'member', name: 'image', value })
      const { stored, rejected } = await run()
      expect(stored).toBe(0)
      expect(rejected).toHaveLength(3)
      for (const reason of rejected) expect(reason).toMatch(/^.+ \(\w+\): .+: the address is not on a host/)
    },
  )

  it('counts tokens without a logo', async () => {
    upstream.faults.set('coingecko', { kind: 'member', name: 'image', value: null })
    expect(await run()).toMatchObject({ stored: 0, without: 3, rejected: [] })
  })
})

describe('/logos', () => {
  it('serves stored logos for ever, also for DAOs, and letters for others', async () => {
    const { folder } = await run()
    await withApi(async (url) => {
      const version = await versionOf(url)
      const get = (id: string) => fetch(`${url}/logos/${version}/${id}`, { redirect: 'manual' })
      for (const id of [UNI, all.daoBySlug.get(uni?.dao ?? '')?.id ?? '']) {
        const response = await get(id)
        expect(response.status).toBe(200)
        expect(response.headers.get('content-type')).toBe('image/png')
        expect(response.headers.get('cache-control')).toContain('immutable')
        expect(Buffer.from(await response.arrayBuffer())).toEqual(readFileSync(join(folder, `${UNI}.png`)))
      }
      const attribution = await get('attribution.json')
      expect(await attribution.text()).toBe(readFileSync(join(folder, 'attribution.json'), 'utf8'))
      const other = await get(UNKNOWN)
      expect([other.status, other.headers.get('location')]).toEqual([302, `../../marks/${UNKNOWN}.svg`])
      const old = await fetch(`${url}/logos/old/${UNI}`)
      expect([old.status, old.headers.get('content-type')]).toEqual([200, 'image/svg+xml'])
      for (const path of ['..%2fstack.json', 'x.png', '']) expect((await get(path)).status).toBe(404)
    })
  })

  it('changes the version with an image', async () => {
    await run()
    const versions: (string | undefined)[] = []
    await withApi(async (url) => void versions.push(await versionOf(url)))
    writeFileSync(join(dataDir, 'logos', `${UNI}.png`), 'other')
    await withApi(async (url) => void versions.push(await versionOf(url)))
    expect(versions[0]).toMatch(/^[\w-]{12}$/)
    expect(versions[1]).toMatch(/^[\w-]{12}$/)
    expect(versions[1]).not.toBe(versions[0])
  })

  it.each([
    ['without the folder', undefined],
    ['with a malformed file', '{"logos":{"x":{"file":"../../x"}}}'],
  ])('is unknown %s, and documents have no version', async (_what, text) => {
    if (text !== undefined) {
      await run()
      writeFileSync(join(dataDir, 'logos', 'attribution.json'), text)
    }
    await withApi(async (url) => {
      expect(await versionOf(url)).toBeUndefined()
      expect((await fetch(`${url}/logos/old/${UNI}`)).status).toBe(404)
      expect((await fetch(`${url}/marks/${UNI}.svg`)).status).toBe(200)
    })
    if (text !== undefined) await expect(run()).rejects.toThrow(/attribution\.json is malformed: remove it/)
  })
})
