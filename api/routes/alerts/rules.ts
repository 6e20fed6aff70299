import { z } from 'zod'
import { answerRecords, timeValue, toObject } from '../../formats/formats.ts'
import { defineRoute } from '../../route/define-route.ts'
import { ALERTS_HOLD_MS } from '../alerts.ts'

const rule = z
  .strictObject({
    rule: z.string().describe('Name of the rule; `/feeds/{rule}.atom` is its feed.'),
    kind: z.string().describe('Kind of condition: level, move, list, proposal, treasury, dataset or provider.'),
    description: z.string().describe('The description of the operator, which may be empty.'),
    lastFiredAt: timeValue.nullable().describe('Time of its last alert; null if it has never fired.'),
    state: z.enum(['active', 'paused']).describe('Whether it is evaluated.'),
  })
  .meta({ id: 'AlertRule', description: 'A rule of the operator, without its channels.' })

const RECORD = toObject(
  rule,
  'r.rule, r.kind, r.description, if(f.fired_at = toDateTime64(0, 3), NULL, f.fired_at), toString(r.state)',
)

const SQL = `
SELECT r.written_at AS as_of, ${RECORD} AS record
FROM (SELECT * FROM alert_rules FINAL WHERE state != 'removed') AS r
LEFT JOIN (SELECT rule, max(fired_at) AS fired_at FROM alert_firings GROUP BY rule) AS f ON f.rule = r.rule
ORDER BY r.rule`

export const alertRulesRoute = defineRoute({
  operation: 'listAlertRules',
  path: '/data/alerts/rules',
  tag: 'Alerts',
  summary: 'The rules of alerts',
  description:
    'The rules that the operator has set, by name. Their channels are not public. A rule is listed from its first evaluation on.',
  query: {},
  record: rule,
  datasets: [],
  handle: async (call) => {
    const answer = await answerRecords(call, { name: 'alert-rules', sql: SQL })
    return { ...answer, staleAt: null, expiresAt: call.now() + ALERTS_HOLD_MS }
  },
})
