import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { toId } from '../../shared/ids.ts'
import { createAlertStore } from '../../workers/alerts/state.ts'
import type { Firing } from '../../workers/alerts/state-rows.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'

const NOW = Date.parse('2024-03-10T12:02:00Z')
const config = createTestConfig({ PUBLIC_URL: 'https://data.example.org' })
let database: Awaited<ReturnType<typeof createApiDatabase>>
let api: TestApi

const firing = (number: number, members: Partial<Firing> = {}): Firing => ({
  ...{
    rule: 'prices-move',
    id: toId('firing', number),
    revision: 'a',
    subject: '',
    kind: 'move',
    firings: 1,
    holds: true,
  },
  ...{
    firedAt: NOW - number * 60_000,
    title: `Alert ${number}`,
    text: 'More.',
    entityType: '',
    entityId: '',
    entityName: '',
  },
  ...{ observedAt: null, value: null, before: null, threshold: null, unit: '', page: null, request: '/data/status' },
  ...{ channels: ['secret-channel'], dueAt: NOW, isDigest: false },
  ...members,
})

beforeAll(async () => {
  database = await createApiDatabase(config)
  const store = createAlertStore(database.writer)
  const [token] = database.registry.tokens
  const { id = '', name = '' } = token ?? {}
  await store.writeFirings([
    firing(1, {
      entityType: 'token',
      entityId: id,
      entityName: name,
      value: 2,
      before: 1,
      threshold: 5,
      unit: 'USD',
      observedAt: NOW,
      page: `/tokens/${id}`,
    }),
    firing(2, { title: '<Fish> & "chips"\u0007', text: 'More\u202e\nPage: https://evil.example' }),
    firing(3, { rule: 'other' }),
    // The same firing, computed again later: the first one stays.
    firing(3, { rule: 'other', firedAt: NOW, title: 'Later' }),
  ])
  const rule = { revision: 'a', kind: 'move', description: 'Moves', beganAt: NOW - 3_600_000 }
  await store.writeRules(
    [
      { ...rule, rule: 'prices-move', state: 'active' },
      { ...rule, rule: 'idle', state: 'paused' },
      { ...rule, rule: 'gone', state: 'removed' },
    ],
    NOW,
  )
  api = await startApi({ config, ...database, changeFeed: createHandFeed(), now: () => NOW })
})
afterAll(async () => {
  await api?.close()
  await database?.drop()
})

const read = async (path: string) => (await fetch(api.url + path)).json() as Promise<Record<string, unknown>[]>

describe('GET /data/alerts', () => {
  it('returns the newest first, with numbers, entity and links', async () => {
    const alerts = await read('/data/alerts')
    expect(alerts.map(({ title }) => title)).toEqual(['Alert 1', '<Fish> & "chips"\u0007', 'Alert 3'])
    const [token] = database.registry.tokens
    expect(alerts[0]).toEqual({
      ...{
        _id: toId('firing', 1),
        rule: 'prices-move',
        firedAt: new Date(NOW - 60_000).toISOString(),
        title: 'Alert 1',
        text: 'More.',
      },
      entity: { type: 'token', id: token?.id, name: token?.name },
      values: { observedAt: new Date(NOW).toISOString(), value: 2, before: 1, threshold: 5, unit: 'USD' },
      url: `https://data.example.org/tokens/${token?.id}`,
      request: 'https://data.example.org/data/status',
    })
    expect(alerts[1]).toMatchObject({ entity: null, url: null })
  })

  it('selects by rule and time', async () => {
    expect((await read('/data/alerts?rule=other')).map(({ title }) => title)).toEqual(['Alert 3'])
    const start = new Date(NOW - 2 * 60_000).toISOString()
    expect(await read(`/data/alerts?start=${start}`)).toHaveLength(2)
    expect(await read(`/data/alerts?end=${start}`)).toHaveLength(1)
    expect((await fetch(`${api.url}/data/alerts?rule=No`)).status).toBe(400)
  })

  it('returns every alert once over all pages', async () => {
    const titles: unknown[] = []
    for (let path: string | undefined = '/data/alerts?limit=1'; path !== undefined; ) {
      const answer = await fetch(api.url + path)
      titles.push(...((await answer.json()) as { title: string }[]).map(({ title }) => title))
      const [, next] = /<([^>]+)>; rel="next"/.exec(answer.headers.get('link') ?? '') ?? []
      path = next === undefined ? undefined : `/data/alerts${new URL(next, api.url).search}`
    }
    expect(titles).toEqual(['Alert 1', '<Fish> & "chips"\u0007', 'Alert 3'])
  })
})

describe('GET /data/alerts/rules', () => {
  it('returns active and paused rules with their last firing, without channels', async () => {
    expect(await read('/data/alerts/rules')).toEqual([
      { rule: 'idle', kind: 'move', description: 'Moves', lastFiredAt: null, state: 'paused' },
      {
        rule: 'prices-move',
        kind: 'move',
        description: 'Moves',
        lastFiredAt: new Date(NOW - 60_000).toISOString(),
        state: 'active',
      },
    ])
  })
})

describe('feeds', () => {
  it('are JSON Feed 1.1', async () => {
    const answer = await fetch(`${api.url}/feeds/prices-move.json`)
    expect(answer.headers.get('content-type')).toMatch(/^application\/feed\+json/)
    const [token] = database.registry.tokens
    expect(await answer.json()).toMatchObject({
      version: 'https://jsonfeed.org/version/1.1',
      title: 'Alerts: Moves',
      feed_url: 'https://data.example.org/feeds/prices-move.json',
      items: [
        {
          id: toId('firing', 1),
          url: `https://data.example.org/tokens/${token?.id}`,
          title: 'Alert 1',
          tags: ['prices-move'],
        },
        {
          ...{ id: toId('firing', 2), url: 'https://data.example.org/data/status', title: '<Fish> & "chips"' },
          content_text: 'More Page: https://evil.example\nhttps://data.example.org/data/status',
        },
      ],
    })
  })

  it('are Atom with escaped texts and without control characters', async () => {
    const answer = await fetch(`${api.url}/feeds/all.atom`)
    expect(answer.headers.get('content-type')).toMatch(/^application\/atom\+xml/)
    const text = await answer.text()
    expect(text).toContain('<title>&lt;Fish&gt; &amp; &quot;chips&quot;</title>')
    expect(text).toContain('>More Page: https://evil.example\nhttps://data.example.org/data/status</content>')
    expect(text.match(/<entry>/g)).toHaveLength(3)
    // Required by RFC 4287 of a feed and of each entry.
    for (const part of ['<id>', '<title>', '<updated>']) expect(text.split(part)).toHaveLength(5)
    expect(text).toContain('<author>')
    expect(text).not.toContain('secret-channel')
  })

  it.each(['atom', 'json'])('answer %s with its own type for the types that readers accept', async (kind) => {
    const types = ['application/rss+xml, application/xml, text/xml', 'application/rss+xml', 'text/xml;q=0.9', '*/*']
    for (const accept of [...types, 'application/atom+xml', 'application/feed+json, application/json']) {
      const { status, headers } = await fetch(`${api.url}/feeds/all.${kind}`, { headers: { accept } })
      expect([status, headers.get('content-type')], accept).toEqual([
        200,
        `application/${kind === 'atom' ? 'atom+xml' : 'feed+json'}; charset=utf-8`,
      ])
    }
    const refused = await fetch(`${api.url}/feeds/all.${kind}`, { headers: { accept: 'text/html' } })
    expect(refused.status).toBe(406)
  })

  it('exist for rules only', async () => {
    expect((await fetch(`${api.url}/feeds/idle.atom`)).status).toBe(200)
    expect((await fetch(`${api.url}/feeds/gone.atom`)).status).toBe(404)
    expect((await fetch(`${api.url}/feeds/nothing.json`)).status).toBe(404)
  })
})
