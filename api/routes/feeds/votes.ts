import { z } from 'zod'
import { governance } from '../../../shared/datasets/governance.ts'
import { FROM_PROPOSALS, toProposalValues } from '../../../shared/datasets/governance-records.ts'
import { COUNTED, SOURCES, toScope } from '../../../shared/datasets/governance-scope.ts'
import { governors } from '../../../shared/datasets/governors.ts'
import { DAY_MS } from '../../../shared/intervals.ts'
import { timeValue } from '../../../shared/record-values.ts'
import type { Dao } from '../../../shared/registry/entities.ts'
import { toLine } from '../../../shared/text-line.ts'
import { findRead } from '../../governance/counted.ts'
import { findStates, NOW } from '../../governance/states.ts'
import { defineRoute } from '../../route/define-route.ts'

const MOST_EVENTS = 500
/** Ended votes stay this long, so that a calendar that is read once a week has had each of them. */
const PAST_DAYS = 7
/** Longest title in an event, in characters. */
const MOST_TITLE = 200
/** Maximum bytes of a line (RFC 5545, section 3.1). */
const MOST_BYTES = 75

const ending = z.object({
  id: z.string(),
  dao: z.number(),
  title: z.string(),
  endsAt: timeValue,
  source: z.enum(SOURCES),
  isEstimated: z.boolean(),
})
type Ending = z.infer<typeof ending>

const { _id: ID, title, endsAt, source, outcome, flagged, timesEstimated } = toProposalValues(NOW)

/** The next deadlines first, then the latest past ones. Spam and canceled votes have none. */
const ENDINGS = `
WITH ${COUNTED}
SELECT toString(${ID}) AS id, p.dao AS dao, ifNull(${title}, '') AS title,
  assumeNotNull(${endsAt}) AS endsAt, ${source} AS source, ifNull(${timesEstimated}, false) AS isEstimated
${FROM_PROPOSALS()}
WHERE isNotNull(d.ends_at) AND d.ends_at > ${NOW} - INTERVAL ${PAST_DAYS} DAY
  AND ifNull(${outcome}, '') != 'canceled' AND NOT ifNull(${flagged}, false)
ORDER BY d.ends_at <= ${NOW}, abs(dateDiff('second', ${NOW}, d.ends_at)), id
LIMIT ${MOST_EVENTS}`

/** Escapes a text value (RFC 5545, section 3.3.11). */
const toText = (text: string) => toLine(text).replaceAll(/[\\;,]/g, '\\$&')

/** Splits a line into lines of at most 75 bytes; the following ones begin with a space (RFC 5545, section 3.1). */
function fold(line: string): string {
  let [folded, bytes] = ['', 0]
  for (const character of line) {
    const size = Buffer.byteLength(character)
    if (bytes + size > MOST_BYTES) {
      folded += '\r\n '
      bytes = 1
    }
    folded += character
    bytes += size
  }
  return folded
}

/** `20260506T194749Z` */
const toTime = (time: string) => `${time.slice(0, 19).replaceAll(/[-:]/g, '')}Z`

const cut = (text: string) => ([...text].length > MOST_TITLE ? `${[...text].slice(0, MOST_TITLE - 1).join('')}…` : text)

function toEvent(publicUrl: string, readAt: string, { id, name }: Pick<Dao, 'id' | 'name'>, vote: Ending): string[] {
  const url = `${publicUrl}/daos/${id}/proposals/${vote.id}`
  const where = vote.source === 'governor' ? 'on its governor' : 'on Snapshot'
  const estimated = vote.isEstimated ? ' The end is estimated, because the contract counts blocks.' : ''
  const title = cut(toLine(vote.title)) || 'proposal without a title'
  return [
    'BEGIN:VEVENT',
    `UID:${vote.id}@dao-data`,
    `DTSTAMP:${toTime(readAt)}`,
    `DTSTART:${toTime(vote.endsAt)}`,
    `SUMMARY:${toText(`${name}: vote ends: ${title}`)}`,
    `DESCRIPTION:${toText(`A vote of ${name} ${where} ends.${estimated} ${url}`)}`,
    `URL:${url}`,
    `CATEGORIES:${toText(name)}`,
    'TRANSP:TRANSPARENT',
    'END:VEVENT',
  ]
}

const HEAD = [
  'BEGIN:VCALENDAR',
  'VERSION:2.0',
  'PRODID:-//dao-data//votes//EN',
  'CALSCALE:GREGORIAN',
  'METHOD:PUBLISH',
  'NAME:Votes of DAOs',
  'X-WR-CALNAME:Votes of DAOs',
  'REFRESH-INTERVAL;VALUE=DURATION:PT1H',
  'X-PUBLISHED-TTL:PT1H',
]

export const votesCalendarRoute = defineRoute({
  operation: 'getVotesCalendar',
  path: '/feeds/votes.ics',
  tag: 'Alerts',
  summary: 'Deadlines of votes as a calendar',
  description: `The ends of the votes of all live DAOs, on Snapshot and on their governors, as a calendar (RFC 5545): one event for each vote that is open, begins later or ended in the last ${PAST_DAYS} days, at most ${MOST_EVENTS}, the next deadlines first. Without canceled votes, and without proposals that Snapshot flagged.`,
  query: {},
  response: z.string().describe('The calendar as iCalendar (RFC 5545).'),
  contentType: 'text/calendar; charset=utf-8',
  alsoAccepted: ['text/plain'],
  datasets: [governance, governors],
  handle: async ({ db, registry, config, now }) => {
    const daos = registry.daos.filter(({ live }) => live)
    const [scope, at] = [toScope(daos, SOURCES), now()]
    const [votes, asOf, { until }] = await Promise.all([
      db.rows({ name: 'votes-calendar', sql: ENDINGS, params: { ...scope, now: at }, schema: ending }),
      findRead(db, scope),
      findStates(db, scope, at),
    ])
    const daoByKey = new Map(daos.map((dao) => [dao.key, dao]))
    const readAt = new Date(asOf ?? 0).toISOString()
    const events = votes.flatMap((vote) => {
      const dao = daoByKey.get(vote.dao)
      return dao === undefined ? [] : toEvent(config.api.publicUrl, readAt, dao, vote)
    })
    const lines = [...HEAD, ...events, 'END:VCALENDAR'].map(fold)
    const body = Buffer.from(`${lines.join('\r\n')}\r\n`)
    // An ended vote leaves the calendar without a change of the data.
    return { body, asOf: asOf ?? null, expiresAt: Math.min(until ?? Number.POSITIVE_INFINITY, at + DAY_MS) }
  },
})
