import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { daoProfileRoute } from '../../api/routes/daos/profile.ts'
import { tokenProfileRoute } from '../../api/routes/tokens/profile.ts'
import { toBucket } from '../../shared/buckets.ts'
import { daoRatings } from '../../shared/datasets/ratings.ts'
import { DAY_MS, HOUR_MS, toBucketStart } from '../../shared/intervals.ts'
import { addCoverage, writeNotes } from '../../shared/ledger/tables.ts'
import type { Dao, Token } from '../../shared/registry/entities.ts'
import { findComposition, toComposition } from '../../shared/registry/index-records.ts'
import { createDatabase, type Database } from '../../shared/store/store.ts'
import { createHandFeed, type HandFeed, startApi, type TestApi } from '../support/api.ts'
import { getDao, getToken } from '../support/entities.ts'
import type { Pipeline } from '../support/pipeline.ts'
import { createRandom } from '../support/random.ts'
import { createSite, SITE_NOW } from '../support/site.ts'

const SEED = 77
const profile = z.looseObject({
  _id: z.string(),
  name: z.string(),
  unavailable: z.array(z.strictObject({ section: z.string(), reason: z.string().min(1) })),
})
const ranges = z.array(z.object({ reason: z.string().nullable() }))

/** The route of each section, and the dataset with the coverage of its reason. */
const TOKEN_SECTIONS = {
  token: ['tokens', 'prices'],
  holders: ['tokens/holders', 'holders'],
  dex: ['tokens/dex-data', 'dex-trades'],
} as const
const DAO_SECTIONS = {
  treasury: ['daos/treasury', 'treasury'],
  fees: ['daos/fees', 'fees'],
  governance: ['daos/governance/summary', 'governance'],
  ratings: ['daos/ratings', 'ratings'],
  socials: ['daos/socials', 'twitter', 'discord'],
  telegram: ['daos/socials/historic-telegram', 'telegram'],
  twitterSentiment: ['daos/twitter-sentiment', 'twitter-sentiment'],
} as const

const READ_AND_EMPTY = 'it was read and has no record'

const clock = { now: SITE_NOW }
const random = createRandom(SEED)
let pipeline: Pipeline
let db: Database
let changeFeed: HandFeed
let api: TestApi

beforeAll(async () => {
  pipeline = await createSite()
  db = createDatabase(pipeline.config.clickhouse, 'read')
  changeFeed = createHandFeed()
  api = await startApi({ config: pipeline.config, db, registry: pipeline.registry, changeFeed, now: () => clock.now })
})
afterAll(async () => {
  await api?.close()
  await db?.close()
  await pipeline?.close()
})

const request = (path: string, query: Record<string, string>) =>
  fetch(`${api.url}/data/${path}?${new URLSearchParams(query)}`)
async function read(path: string, query: Record<string, string>) {
  const response = await request(path, query)
  const text = await response.text()
  expect(response.status, `${path} ${JSON.stringify(query)} ${text}`).toBe(200)
  return text
}
/** The first record of a list or series, as written in the response; undefined for an empty one. */
async function readFirst(path: string, query: Record<string, string>) {
  const { pathname } = new URL(`${api.url}/data/${path}`)
  const text = await read(path, pathname.includes('historic') ? { ...query, limit: '1' } : query)
  return text === '[]' ? undefined : text.slice(1, -1)
}

async function expectSections(
  text: string,
  id: string | undefined,
  sections: Readonly<Record<string, readonly [path: string, ...datasets: string[]]>>,
) {
  const { unavailable, ...found } = profile.parse(JSON.parse(text))
  for (const [name, [path, ...datasets]] of Object.entries(sections)) {
    const record = id === undefined ? undefined : await readFirst(path, { id })
    const reason = unavailable.find(({ section }) => section === name)?.reason
    if (record !== undefined) {
      expect(text, name).toContain(`"${name}":${record}`)
      expect(reason, name).toBeUndefined()
      continue
    }
    expect(found[name], name).toBeNull()
    if (id === undefined) {
      expect(reason).toBe('it has no token')
      continue
    }
    const start = new Date(SITE_NOW - 3 * DAY_MS).toISOString()
    for (const dataset of datasets) {
      const observed = ranges.parse(JSON.parse(await read('status/coverage', { dataset, id, start })))
      const reasons = observed.flatMap((range) => (range.reason === null ? [] : [range.reason]))
      expect(
        [...reasons, READ_AND_EMPTY, 'its stored data is not current'].some((one) => reason?.includes(one)),
        `${name}: ${reason}; ${dataset}: ${reasons.join()}`,
      ).toBe(true)
    }
  }
}

describe('GET /data/daos/profile', () => {
  it('returns the records of the other routes, and a reason for each missing section', async () => {
    const { daos } = pipeline.registry
    const special = daos.filter((dao) => !dao.live || dao.token === null)
    const selected = Array.from({ length: 8 }, () => random.pick(daos.filter(({ live }) => live)))
    const seen = { unavailable: 0, available: 0 }
    for (const dao of [...special.slice(0, 5), ...selected]) {
      const text = await read('daos/profile', { id: dao.id })
      const body = daoProfileRoute.response.parse(JSON.parse(text))
      expect(JSON.stringify(body)).toBe(JSON.stringify(JSON.parse(text)))
      await expectSections(text, dao.id, DAO_SECTIONS)
      await expectSections(text, dao.token ?? undefined, TOKEN_SECTIONS)
      const { unavailable, dao: record } = profile.parse(body)
      expect(record === null).toBe(!dao.live)
      seen.unavailable += unavailable.length
      seen.available += Object.keys(DAO_SECTIONS).length + 4 - unavailable.length
    }
    expect(Math.min(...Object.values(seen))).toBeGreaterThan(10)
  })

  /** DAOs without a rating. */
  async function findUnrated(): Promise<Dao[]> {
    const unrated: Dao[] = []
    for (const dao of pipeline.registry.daos.filter(({ live }) => live).slice(0, 20))
      if ((await readFirst('daos/ratings', { id: dao.id })) === undefined) unrated.push(dao)
    return unrated
  }
  const whyUnrated = async ({ id }: Dao) => {
    const { unavailable } = profile.parse(JSON.parse(await read('daos/profile', { id })))
    return unavailable.find(({ section }) => section === 'ratings')?.reason
  }

  it('reports an empty section as read', async () => {
    const dao = (await findUnrated()).at(-1) as Dao
    const yesterday = toBucket(SITE_NOW, '1d') - 1
    const read = { first: yesterday, last: yesterday, seconds: DAY_MS / 1000, state: 'stored' } as const
    await addCoverage(pipeline.database.db, daoRatings, [{ entity: dao.key, provider: 'file', ...read }])
    expect(await whyUnrated(dao)).toBe(READ_AND_EMPTY)
  })

  it('returns the reason of a failure from a minute after it', async () => {
    const [dao] = await findUnrated()
    if (dao === undefined) throw new Error('every DAO has a rating')
    const reasonOf = () => whyUnrated(dao)
    const before = await reasonOf()
    const today = toBucketStart(SITE_NOW, '1d')
    await writeNotes(pipeline.database.db, daoRatings, [
      {
        ...{ entity: dao.key, queueClass: 'live', from: today, to: today + DAY_MS, state: 'failed' },
        ...{ provider: 'file', reason: 'the file is gone', since: today + HOUR_MS, tries: 2, nextTry: SITE_NOW },
      },
    ])
    expect(await reasonOf()).toBe(before)
    clock.now += 60_001
    try {
      expect(await reasonOf()).toBe(`the file is gone (since ${new Date(today + HOUR_MS).toISOString()})`)
    } finally {
      clock.now = SITE_NOW
    }
  })

  it('returns one DAO by id or name', async () => {
    const aave = getDao(pipeline.registry, 'aave')
    expect(await read('daos/profile', { name: 'aave' })).toBe(await read('daos/profile', { id: aave.id }))
    expect((await request('daos/profile', {})).status).toBe(400)
    expect((await request('daos/profile', { id: 'f'.repeat(24) })).status).toBe(404)
    expect((await request('daos/profile', { id: aave.id, fields: '_id' })).status).toBe(400)
  })

  it('changes with each of its sections, and has the age of the newest', async () => {
    const { id } = getDao(pipeline.registry, 'aave')
    const first = await request('daos/profile', { id })
    const token = await request('tokens', { name: 'Aave', limit: '1' })
    expect(first.headers.get('x-data-as-of')).toBe(token.headers.get('x-data-as-of'))
    const [record] = await db.rows({
      name: 'holders',
      sql: 'SELECT token, total_holders AS count FROM token_holders_latest FINAL WHERE token = {token: UInt64}',
      params: { token: getToken(pipeline.registry, 'AAVE').key },
      schema: z.object({ token: z.number(), count: z.number() }),
    })
    const at = new Date(SITE_NOW - 1000).toISOString()
    const rows = [{ token: record?.token, observed_at: at, total_holders: 987654, top100_share: 1, holders: [] }]
    await pipeline.database.db.insert({ table: 'token_holders', rows })
    expect(await (await request('daos/profile', { id })).text()).toBe(await first.text())
    changeFeed.commit('holders')
    expect(await read('daos/profile', { id })).toContain('"totalHolders":987654')
  })
})

describe('GET /data/tokens/profile', () => {
  it('returns the records of the other routes, and a reason for each missing section', async () => {
    const { tokens, index, daoBySlug } = pipeline.registry
    const members = new Set(findComposition(index, SITE_NOW)?.elements.map(({ token }) => token.id))
    const selected = Array.from({ length: 8 }, () => random.pick(tokens.filter(({ live }) => live)))
    const [member] = index.compositions.at(-1)?.elements.map(({ token }) => token) ?? []
    for (const token of [...tokens.filter(({ live }) => !live).slice(0, 4), ...selected, member]) {
      if (token === undefined) continue
      const text = await read('tokens/profile', { id: token.id })
      const body = tokenProfileRoute.response.parse(JSON.parse(text))
      expect(JSON.stringify(body)).toBe(JSON.stringify(JSON.parse(text)))
      await expectSections(text, token.id, TOKEN_SECTIONS)
      const { unavailable, index: weight, dao } = profile.parse(body)
      const reasonOf = (name: string) => unavailable.find(({ section }) => section === name)?.reason
      const weights = await readFirst('index/weights', { filter: `token=${token.id}` })
      if (weights === undefined) expect(reasonOf('index')).toBe('it is not in the Index')
      else expect(text).toContain(`"index":${weights}`)
      expect(weight === null).toBe(weights === undefined)
      expect(weight !== null).toBe(members.has(token.id))
      expect((dao as { _id?: string } | null)?._id).toBe(
        daoBySlug.get(token.dao)?.live ? daoBySlug.get(token.dao)?.id : undefined,
      )
      expect(reasonOf('dao')).toBe(dao === null ? 'its DAO is not live' : undefined)
    }
  })

  it('reports that a member since the last rebalance has no value in the Index yet', async () => {
    const { registry } = pipeline
    const { index, tokens } = registry
    const elements = findComposition(index, SITE_NOW)?.elements ?? []
    const isNew = ({ id, live }: Token) => live && elements.every(({ token }) => token.id !== id)
    const [joined, outside] = tokens.filter(isNew) as [Token, Token]
    const rebalanced = toComposition(SITE_NOW - 1000, [...elements, { token: joined, quantity: '1' }])
    const compositions = [...index.compositions, rebalanced]
    const second = await startApi({
      ...{ config: pipeline.config, db, changeFeed: createHandFeed(), now: () => SITE_NOW },
      registry: { ...registry, index: { ...index, compositions } },
    })
    const reasonOf = async ({ id }: Token) => {
      const response = await fetch(`${second.url}/data/tokens/profile?id=${id}`)
      return profile.parse(await response.json()).unavailable.find(({ section }) => section === 'index')?.reason
    }
    try {
      expect(await reasonOf(joined)).toMatch(/^the Index has no value with it yet/)
      expect(await reasonOf(outside)).toBe('it is not in the Index')
    } finally {
      await second.close()
    }
  })
})
