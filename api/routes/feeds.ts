import { z } from 'zod'
import type { Database } from '../../shared/store/store.ts'
import { toLine } from '../../shared/text-line.ts'
import { timeValue } from '../formats/formats.ts'
import { Problem } from '../problem/problem.ts'
import { defineRoute } from '../route/define-route.ts'
import { ALERTS_HOLD_MS, ruleName } from './alerts.ts'

const MOST_ENTRIES = 50
/** The feed of all rules. No rule has this name. */
const ALL = 'all'

const entry = z.object({
  id: z.string(),
  rule: z.string(),
  firedAt: timeValue,
  title: z.string(),
  text: z.string(),
  page: z.string().nullable(),
  request: z.string().nullable(),
})
type Entry = z.infer<typeof entry>

const ENTRIES = `SELECT id, rule, fired_at AS firedAt, title, text, page, request FROM alert_firings FINAL
WHERE {rule: String} = '${ALL}' OR rule = {rule: String} ORDER BY fired_at DESC, id LIMIT ${MOST_ENTRIES}`

const known = z.object({ description: z.string(), at: timeValue })

interface Feed {
  readonly title: string
  readonly updated: string
  readonly entries: readonly Entry[]
}

async function readFeed(db: Database, rule: string): Promise<Feed> {
  const [entries, [found]] = await Promise.all([
    db.rows({ name: 'feed', sql: ENTRIES, params: { rule }, schema: entry }),
    db.rows({
      name: 'feed-rule',
      sql: "SELECT description, began_at AS at FROM alert_rules FINAL WHERE rule = {rule: String} AND state != 'removed'",
      params: { rule },
      schema: known,
    }),
  ])
  if (rule !== ALL && found === undefined && entries.length === 0)
    throw new Problem('not_found', `There is no rule ${rule}: /data/alerts/rules lists the rules.`, { param: 'rule' })
  const title = rule === ALL ? 'All alerts' : `Alerts: ${toLine(found?.description ?? '') || rule}`
  const updated = entries[0]?.firedAt ?? found?.at ?? new Date(0).toISOString()
  // Texts may be those of strangers. XML 1.0 has no control characters, also not escaped.
  const lines = entries.map((one) => ({ ...one, title: toLine(one.title), text: toLine(one.text) }))
  return { title, updated, entries: lines }
}

const toPage = (publicUrl: string, { page, request }: Entry) => `${publicUrl}${page ?? request ?? '/'}`
const toText = (publicUrl: string, { text, request }: Entry) =>
  request === null ? text : `${text}\n${publicUrl}${request}`

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }
const toXml = (text: string) => text.replaceAll(/[&<>"]/g, (character) => ESCAPES[character] ?? character)

/** RFC 4287. */
function toAtom(publicUrl: string, rule: string, { title, updated, entries }: Feed): string {
  const self = `${publicUrl}/feeds/${rule}.atom`
  const items = entries.map(
    (
      one,
    ) => `<entry><id>urn:dao-data:alert:${one.id}</id><title>${toXml(one.title)}</title><updated>${one.firedAt}</updated>
<link href="${toXml(toPage(publicUrl, one))}"/><category term="${toXml(one.rule)}"/>
<content type="text">${toXml(toText(publicUrl, one))}</content></entry>
`,
  )
  return `<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom"><id>${toXml(self)}</id><title>${toXml(title)}</title><updated>${updated}</updated>
<link rel="self" type="application/atom+xml" href="${toXml(self)}"/><author><name>dao-data</name></author>
${items.join('')}</feed>
`
}

const jsonFeed = z
  .strictObject({
    version: z.literal('https://jsonfeed.org/version/1.1').describe('The version of JSON Feed.'),
    title: z.string().describe('Title of the feed.'),
    home_page_url: z.url().describe('URL of the service.'),
    feed_url: z.url().describe('URL of this feed.'),
    items: z
      .array(
        z.strictObject({
          id: z.string().describe('Id of the alert.'),
          url: z.url().describe('URL of the page about it, or of the data behind it.'),
          title: z.string().describe('The event in one line.'),
          content_text: z.string().describe('More about it, and the URL of the data behind it.'),
          date_published: timeValue.describe('When the rule fired.'),
          tags: z.array(z.string()).describe('The name of the rule.'),
        }),
      )
      .describe(`The newest alerts, at most ${MOST_ENTRIES}.`),
  })
  .meta({ id: 'JsonFeed', description: 'A feed of alerts as JSON Feed 1.1.' })

function toJsonFeed(publicUrl: string, rule: string, { title, entries }: Feed): z.infer<typeof jsonFeed> {
  return {
    version: 'https://jsonfeed.org/version/1.1',
    title,
    home_page_url: publicUrl,
    feed_url: `${publicUrl}/feeds/${rule}.json`,
    items: entries.map((one) => ({
      id: one.id,
      url: toPage(publicUrl, one),
      title: one.title,
      content_text: toText(publicUrl, one),
      date_published: one.firedAt,
      tags: [one.rule],
    })),
  }
}

const query = {
  rule: ruleName.meta({ description: 'Name of the rule, or `all`.', examples: [ALL] }),
}

/** Readers of feeds send these types for every kind of feed (docs/contract.md, section 11). */
const FEED_TYPES = [
  ...['application/atom+xml', 'application/rss+xml', 'application/xml', 'text/xml'],
  ...['application/feed+json', 'application/json'],
]

const DESCRIPTION = `The newest ${MOST_ENTRIES} alerts of a rule, or of all rules with \`all\`.`

export const atomFeedRoute = defineRoute({
  operation: 'getAtomFeed',
  path: '/feeds/{rule}.atom',
  tag: 'Alerts',
  summary: 'Alerts as an Atom feed',
  description: DESCRIPTION,
  query,
  response: z.string().describe('The feed as Atom (RFC 4287).'),
  contentType: 'application/atom+xml; charset=utf-8',
  alsoAccepted: FEED_TYPES,
  datasets: [],
  handle: async ({ db, query: { rule }, config, now }) => {
    const feed = await readFeed(db, rule)
    const body = Buffer.from(toAtom(config.api.publicUrl, rule, feed))
    return { body, asOf: null, expiresAt: now() + ALERTS_HOLD_MS }
  },
})

export const jsonFeedRoute = defineRoute({
  operation: 'getJsonFeed',
  path: '/feeds/{rule}.json',
  tag: 'Alerts',
  summary: 'Alerts as a JSON feed',
  description: DESCRIPTION,
  query,
  response: jsonFeed,
  contentType: 'application/feed+json; charset=utf-8',
  alsoAccepted: FEED_TYPES,
  datasets: [],
  handle: async ({ db, query: { rule }, config, now }) => {
    const feed = toJsonFeed(config.api.publicUrl, rule, await readFeed(db, rule))
    return { body: Buffer.from(JSON.stringify(feed)), asOf: null, expiresAt: now() + ALERTS_HOLD_MS }
  },
})
