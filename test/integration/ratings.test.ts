import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ratingsRoute } from '../../api/routes/daos/ratings.ts'
import { daoRatingRow } from '../../shared/datasets/ratings.ts'
import ratings from '../../workers/jobs/ratings.ts'
import { runJob } from '../../workers/run/runner.ts'
import { startProviderServer } from '../provider-server.ts'
import { createServedPipeline, type ServedPipeline } from '../support/served-pipeline.ts'

const DAY = 86_400_000
const TODAY = Date.parse('2024-05-06T00:00:00Z')
const HEADER =
  'dao,overallRating,fundamentalRating,governance,team,competitiveMoat,valueProposition,tokenEconomics,lastUpdated,source'
const line = (dao: string, overall: number | string = 70) => `${dao},${overall},64,60,61,62,63,64,2024-03-01,Somebody`

interface RatingsRecord {
  _id: string
  name: string
  ratings: { overallRating: number; lastUpdated: string }
}

let pipeline: ServedPipeline
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dao-data-ratings-'))
  pipeline = await createServedPipeline({ now: TODAY + 60_000 })
})
afterAll(async () => {
  await pipeline?.close()
  await rm(folder, { recursive: true, force: true })
})

/** The settings with or without a source of ratings. */
function contextWith(source: string | undefined) {
  const { config } = pipeline
  const providers = { ...config.providers, ratings: { ...config.providers.ratings, source } }
  return { ...pipeline.context, config: { ...config, providers } }
}
async function collect(source: string | undefined) {
  const context = contextWith(source)
  const slot = Math.floor(pipeline.clock.now / DAY) * DAY
  const report = await runJob(ratings, ratings.connect(context), context, { kind: 'slot', slot, again: true })
  pipeline.changeFeed.commit('ratings')
  return report
}
async function collectFile(...lines: string[]) {
  const path = join(folder, 'ratings.csv')
  await writeFile(path, `${[HEADER, ...lines].join('\n')}\n`)
  return collect(path)
}
const get = async (query = 'limit=500') => {
  const body: unknown = await (await fetch(`${pipeline.url}/data/daos/ratings?${query}`)).json()
  return ratingsRoute.response.parse(body) as RatingsRecord[]
}
const names = async () => (await get()).map(({ name }) => name)
const stored = () =>
  pipeline.database.db.rows({
    name: 'stored',
    sql: 'SELECT * EXCEPT collected_at FROM dao_ratings FINAL ORDER BY dao, observed_at',
    schema: daoRatingRow,
  })

describe('ratings from file to response', () => {
  it('are empty without a file, which is not a failure', async () => {
    const { length } = pipeline.registry.daos.filter(({ live }) => live)
    expect(await collect(undefined)).toMatchObject({ rows: 0, rejected: 0, uncovered: length })
    expect(await get()).toEqual([])
  })

  it('are served as in the file, for its DAOs', async () => {
    expect(await collectFile(line('uniswap', 80.25), line('Aave'))).toMatchObject({ rows: 2, rejected: 0 })
    expect(await names()).toEqual(['Aave', 'Uniswap'])
    const [uniswap] = await get('name=uniswap')
    expect(uniswap).toEqual({
      _id: pipeline.registry.daoBySlug.get('uniswap')?.id,
      name: 'Uniswap',
      ratings: {
        overallRating: 80.25,
        fundamentalRating: 64,
        fundamentals: { governance: 60, team: 61, competitiveMoat: 62, valueProposition: 63, tokenEconomics: 64 },
        lastUpdated: '2024-03-01T00:00:00.000Z',
      },
    })
    expect(await get('name=compound')).toEqual([])
  })

  it('do not change when the file is read again', async () => {
    const before = await stored()
    await collectFile(line('uniswap', 80.25), line('aave'))
    expect(await stored()).toEqual(before)
  })

  it('are kept if the file is missing, empty or mostly invalid, with the reason', async () => {
    const before = await stored()
    pipeline.clock.now += DAY
    await expect(collect(join(folder, 'nowhere.csv'))).rejects.toMatchObject({
      code: 'provider_unavailable',
      // The API returns the reason without the operator's path.
      message: expect.stringContaining('ratings-file: RATINGS_SOURCE: nowhere.csv cannot be read (ENOENT)'),
    })
    await expect(collectFile()).rejects.toMatchObject({ code: 'provider_malformed' })
    await expect(collectFile(line('uniswap', 'x'), line('aave', 'y'), line('ens', 'z'))).rejects.toMatchObject({
      code: 'rows_rejected',
      message: expect.stringMatching(/: ratings\.csv:2: overallRating: must be a number/),
    })
    expect(await stored()).toEqual(before)
    expect(await names()).toEqual(['Aave', 'Uniswap'])
  })

  it('are kept after an invalid row, and removed a week after leaving the file', async () => {
    const { slug } = pipeline.registry.daos.find(({ name }) => name === 'Compound') ?? { slug: 'compound' }
    await collectFile(line('uniswap'), line('aave', 'bad'), line(slug))
    expect(await names()).toEqual(expect.arrayContaining(['Aave', 'Uniswap']))
    expect(await names()).toHaveLength(3)
    pipeline.clock.now += 6 * DAY
    await collectFile(line('uniswap', 90))
    expect(await names()).toHaveLength(2)
    expect((await get('name=uniswap'))[0]?.ratings.overallRating).toBe(90)
    pipeline.clock.now += 7 * DAY
    await collectFile(line('uniswap', 91))
    expect(await names()).toEqual(['Uniswap'])
  })

  it('can be JSON from a URL, with its key redacted in messages', async () => {
    const fundamentals = { governance: 1, team: 2, competitiveMoat: 3, valueProposition: 4, tokenEconomics: 5 }
    const rating = { dao: 'ens', overallRating: 9, fundamentalRating: 8, fundamentals, lastUpdated: '2024-01-01' }
    let status = 200
    const server = await startProviderServer((_, response) => {
      response.writeHead(status, { 'content-type': 'text/plain' }).end(JSON.stringify([rating]))
    })
    const url = `${server.baseUrl}/lists/ratings.json?api_key=hidden-word`
    expect(await collect(url)).toMatchObject({ rows: 1 })
    expect(server.requests[0]?.url.href).toContain('/lists/ratings.json?api_key=hidden-word')
    expect((await get(`id=${pipeline.registry.daoBySlug.get('ens')?.id}`))[0]?.ratings.overallRating).toBe(9)
    status = 404
    const failure = await collect(url).catch((error: unknown) => error)
    expect(failure).toMatchObject({ code: 'provider_rejected' })
    expect(String(failure)).not.toContain('hidden-word')
    await server.close()
  })
})
