import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Dao } from '../../shared/registry/entities.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { getDao } from '../support/entities.ts'

const NOW = Date.parse('2024-03-10T12:02:00Z')
const READ_AT = '2024-03-10T12:00:00.000Z'
const HOUR = 3_600_000
const DAY = 24 * HOUR
const PUBLIC_URL = 'https://data.example.org'
/** More votes than a calendar has events. */
const VOTES = 700

const config = createTestConfig({ PUBLIC_URL })
const changeFeed = createHandFeed()
let database: Awaited<ReturnType<typeof createApiDatabase>>
let api: TestApi
let dao: Dao

interface Proposal {
  readonly proposal: string
  readonly title: string
  readonly endsIn: number
  readonly isFlagged?: boolean
}

const HOSTILE = 'Pay, then; run \\n\r\nEND:VEVENT\r\nBEGIN:VEVENT\u202e "now"'
const LONG = `${'Größe €uro 🗳️ '.repeat(40)}end`
const PROPOSALS: readonly Proposal[] = [
  { proposal: 'soon', title: HOSTILE, endsIn: HOUR },
  { proposal: 'later', title: LONG, endsIn: 2 * HOUR },
  { proposal: 'empty', title: '', endsIn: 3 * HOUR },
  { proposal: 'spam', title: 'Free tokens', endsIn: HOUR, isFlagged: true },
  { proposal: 'past', title: 'Ended three days ago', endsIn: -3 * DAY },
  { proposal: 'old', title: 'Ended eight days ago', endsIn: -8 * DAY },
]

const store = (proposals: readonly Proposal[]) => {
  const common = { dao: dao.key, space: dao.snapshotSpace, at: READ_AT, address: '0x1', kind: 'proposal' }
  const rows = proposals.map(({ proposal, title, endsIn, isFlagged = false }) => ({
    ...{ ...common, proposal, title, is_flagged: isFlagged },
    ...{ starts_at: Math.floor(NOW / 1000) - 20 * 86_400, ends_at: Math.floor((NOW + endsIn) / 1000) },
  }))
  const reading = { ...common, kind: 'reading', proposal: '', address: '' }
  return database.writer.insert({ table: 'governance_in', rows: [...rows, reading] })
}

beforeAll(async () => {
  database = await createApiDatabase(config)
  dao = getDao(database.registry, 'uniswap')
  await store(PROPOSALS)
  api = await startApi({ config, ...database, changeFeed, now: () => NOW })
})

afterAll(async () => {
  await api?.close()
  await database?.drop()
})

const load = async () => {
  const answer = await fetch(`${api.url}/feeds/votes.ics`, { headers: { accept: 'text/calendar' } })
  return { answer, text: await answer.text() }
}

/** The lines of a calendar as RFC 5545, section 3.1 unfolds them. */
const unfold = (text: string) => text.replaceAll('\r\n ', '').split('\r\n').slice(0, -1)

/** The properties of each event. */
function readEvents(text: string): Record<string, string>[] {
  const events: Record<string, string>[] = []
  for (const line of unfold(text)) {
    if (line === 'BEGIN:VEVENT') events.push({})
    const at = line.indexOf(':')
    const event = events.at(-1)
    if (event !== undefined) event[line.slice(0, at)] = line.slice(at + 1)
  }
  return events
}

const readText = (text: string) => text.replaceAll(/\\(.)/g, '$1')

describe('/feeds/votes.ics', () => {
  it('has an event for each open or recently ended vote, the next deadline first', async () => {
    const { answer, text } = await load()
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toBe('text/calendar; charset=utf-8')
    const lines = unfold(text)
    expect([lines[0], lines[1], lines.at(-1)]).toEqual(['BEGIN:VCALENDAR', 'VERSION:2.0', 'END:VCALENDAR'])
    expect(lines.filter((line) => line === 'BEGIN:VEVENT')).toHaveLength(4)
    expect(lines.filter((line) => line === 'END:VEVENT')).toHaveLength(4)
    const events = readEvents(text)
    expect(events.map(({ DTSTART }) => DTSTART)).toEqual([
      '20240310T130200Z',
      '20240310T140200Z',
      '20240310T150200Z',
      '20240307T120200Z',
    ])
    expect(new Set(events.map(({ UID }) => UID)).size).toBe(4)
    expect(events.map(({ DTSTAMP }) => DTSTAMP)).toEqual(Array(4).fill('20240310T120000Z'))
    expect(events[0]?.URL).toMatch(new RegExp(`^${PUBLIC_URL}/daos/${dao.id}/proposals/[0-9a-f]{24}$`))
    expect(text).not.toContain('Free tokens')
  })

  it('escapes texts of strangers, which stay one line', async () => {
    const { text } = await load()
    const [first, , third] = readEvents(text)
    expect(first?.SUMMARY).toBe('Uniswap: vote ends: Pay\\, then\\; run \\\\n END:VEVENT BEGIN:VEVENT "now"')
    expect(readText(first?.SUMMARY ?? '')).toContain('Pay, then; run \\n END:VEVENT')
    expect(third?.SUMMARY).toContain('proposal without a title')
  })

  it('folds lines at 75 bytes, between characters, and cuts long titles', async () => {
    const { text } = await load()
    expect(text.endsWith('\r\n')).toBe(true)
    expect(text.replaceAll('\r\n', '')).not.toMatch(/[\r\n\ufffd]/)
    const sizes = text.split('\r\n').map((line) => Buffer.byteLength(line))
    expect(Math.max(...sizes)).toBeLessThanOrEqual(75)
    const title = readEvents(text)[1]?.SUMMARY?.slice('Uniswap: vote ends: '.length) ?? ''
    expect(LONG.startsWith(title.slice(0, -1))).toBe(true)
    expect([...title]).toHaveLength(200)
    expect(title.at(-1)).toBe('…')
  })

  it('has at most 500 events', async () => {
    const more = Array.from({ length: VOTES }, (_, at) => ({
      ...{ proposal: `many-${at}`, title: `Proposal ${at}`, endsIn: DAY + at * 60_000 },
    }))
    await store(more)
    changeFeed.commit('governance')
    const events = readEvents((await load()).text)
    expect(events).toHaveLength(500)
    expect(events.at(-1)?.SUMMARY).toBe('Uniswap: vote ends: Proposal 496')
  })
})
