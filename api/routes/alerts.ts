import { z } from 'zod'
import { END_OF_TIME } from '../../shared/intervals.ts'
import { answerRecords, defineKeyset, idValue, numberOrNull, timeValue, toObject } from '../formats/formats.ts'
import { page, time } from '../parameters/kinds.ts'
import { defineRoute } from '../route/define-route.ts'

/** A rule may fire at any time, so an answer is reused for this time. */
export const ALERTS_HOLD_MS = 5_000

const entity = z
  .strictObject({
    type: z.enum(['token', 'dao']).describe('Whether it is a token or a DAO.'),
    id: idValue.describe('Its id.'),
    name: z.string().describe('Its name when the alert fired.'),
  })
  .meta({ id: 'AlertEntity', description: 'The subject of an alert.' })

const values = z
  .strictObject({
    observedAt: timeValue.nullable().describe('Time of the value or event; null if there is none.'),
    value: numberOrNull.describe('The value that fired the rule; null for events.'),
    before: numberOrNull.describe('The value that it is compared with; null if there is none.'),
    threshold: numberOrNull.describe('The bound of the rule; null if it has none.'),
    unit: z.string().nullable().describe('`USD`, or null for counts and shares.'),
  })
  .meta({ id: 'AlertValues', description: 'The numbers behind an alert.' })

const alert = z
  .strictObject({
    _id: idValue.describe('Id of the alert. The webhook of a single alert has it as `webhook-id`.'),
    rule: z.string().describe('Name of the rule.'),
    firedAt: timeValue.describe('When the rule fired.'),
    title: z.string().describe('The event in one line.'),
    text: z.string().describe('More about it.'),
    entity: entity.nullable().describe('The token or DAO that it is about; null for other alerts.'),
    values: values.describe('The numbers behind it.'),
    url: z.string().nullable().describe('URL of its page; null if there is none.'),
    request: z.string().nullable().describe('URL of its data; null if there is none.'),
  })
  .meta({ id: 'Alert', description: 'A rule of the operator that fired.' })

const RECORD = toObject(
  alert,
  `id, rule, fired_at, title, text,
  if(entity_id = '', NULL, ${toObject(entity, 'entity_type, entity_id, entity_name')}),
  tuple(observed_at, value, before, threshold, nullIf(toString(unit), '')), concat({base: String}, page), concat({base: String}, request)`,
)

const NEWEST_FIRST = defineKeyset(['-toUnixTimestamp64Milli(fired_at)', 'Int64'], ['id', 'String'])

const toSql = (after: string) => `
SELECT fired_at AS as_of, ${NEWEST_FIRST.place} AS page_key, ${RECORD} AS record
FROM alert_firings FINAL
WHERE ({rule: String} = '' OR rule = {rule: String}) AND fired_at >= fromUnixTimestamp64Milli({from: Int64}, 'UTC')
  AND fired_at < fromUnixTimestamp64Milli({to: Int64}, 'UTC')${NEWEST_FIRST.isAfter(after)}
ORDER BY ${NEWEST_FIRST.order}
LIMIT {limit: UInt32}`

export const ruleName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'must be the name of a rule: lower-case letters, digits and hyphens')

export const alertsRoute = defineRoute({
  operation: 'listAlerts',
  path: '/data/alerts',
  tag: 'Alerts',
  summary: 'Alerts that fired',
  description:
    'The alerts that fired by the rules of the operator, newest first. `/data/alerts/rules` lists the rules. New alerts appear within seconds.',
  query: {
    rule: ruleName.optional().meta({ description: 'Only alerts of this rule.', examples: ['prices-stale'] }),
    start: time('Only alerts that fired at this moment or later.', '2024-01-01').optional(),
    end: time('Only alerts that fired before this moment.', '2024-02-01').optional(),
    ...page('alerts', { default: 100, max: 1000 }),
  },
  record: alert,
  datasets: [],
  handle: async (call) => {
    const { config, query, now, representation } = call
    const range = { from: query.start ?? 0, to: query.end ?? END_OF_TIME }
    const answer = await answerRecords(call, {
      name: 'alerts',
      sql: toSql(representation.after),
      params: { rule: query.rule ?? '', ...range, base: config.api.publicUrl },
      page: query.limit,
    })
    return { ...answer, staleAt: null, expiresAt: now() + ALERTS_HOLD_MS }
  },
})
