import { z } from 'zod'
import { datasets } from '../../../shared/datasets/list.ts'
import { DAY_MS } from '../../../shared/intervals.ts'
import { openLedgers } from '../../../shared/ledger/ledger.ts'
import { readFailing, readNewest, toFreshnessState, toLagSeconds } from '../../../shared/store/store.ts'
import { formatTime } from '../state.ts'
import {
  type ConditionContext,
  type Evaluate,
  NOTHING,
  type Result,
  type RuleOf,
  toSubjectResult,
} from './condition.ts'

const correctedRow = z.object({
  dataset: z.string(),
  position: z.int(),
  entities: z.int(),
  from: z.int(),
  to: z.int(),
})

async function readCorrected(rules: readonly RuleOf<'dataset'>[], { db, now }: ConditionContext) {
  if (!rules.some(({ what }) => what.is === 'corrected')) return new Map()
  const rows = await db.rows({
    name: 'alert-corrected',
    sql: `SELECT dataset, toUnixTimestamp64Milli(max(changed_at)) AS position, uniqExact(entity) AS entities,
  toUnixTimestamp64Milli(min(begins_at)) AS from, toUnixTimestamp64Milli(max(ends_at)) AS to
FROM history_changes FINAL WHERE changed_at >= fromUnixTimestamp64Milli({since: Int64}, 'UTC') GROUP BY dataset`,
    params: { since: now - DAY_MS },
    schema: correctedRow,
  })
  return new Map(rows.map((row) => [row.dataset, row]))
}

export const evaluateDatasets: Evaluate<'dataset'> = async (rules, context) => {
  const { db, registry, now } = context
  const named = new Set(rules.map(({ what }) => what.dataset))
  const watched = datasets.filter(({ name }) => named.has(name))
  const needsShare = rules.some(({ what }) => what.is === 'incomplete')
  const [newest, completeness, corrected] = await Promise.all([
    Promise.all(watched.map(async (dataset) => [dataset.name, await readNewest(db, dataset)] as const)),
    needsShare ? openLedgers(db, watched).completeness(registry, now) : new Map(),
    readCorrected(rules, context),
  ])
  const newestOf = new Map(newest)
  return new Map(
    rules.map((rule): [string, Result] => {
      const { dataset: name, is, below } = rule.what
      const dataset = watched.find((one) => one.name === name)
      const at = newestOf.get(name) ?? null
      const facts = { ...NOTHING, subject: name, request: '/data/status', observedAt: at }
      if (is === 'corrected') {
        const row = corrected.get(name)
        const request = `/data/changes?dataset=${name}`
        const subjects =
          row === undefined
            ? []
            : [
                {
                  ...{ ...facts, request, observedAt: row.position, position: row.position },
                  describe: () => ({
                    title: `Dataset ${name}: history was corrected`,
                    text: `History of ${row.entities} entities between ${formatTime(row.from)} and ${formatTime(row.to)} was stored anew.`,
                  }),
                },
              ]
        return [rule.name, { type: 'progress', subjects }]
      }
      const newestText = at === null ? 'It has no data.' : `Its newest value is of ${formatTime(at)}.`
      if (is === 'stale') {
        // An empty dataset was never collected: that is how a service without its key begins.
        const state = toFreshnessState(toLagSeconds(at, now), dataset?.cadence ?? '1d')
        const describe = () => ({ title: `Dataset ${name}: stale`, text: newestText })
        const subject = toSubjectResult({ ...facts, holds: state === 'stale', describe })
        return [rule.name, { type: 'state', isComplete: true, subjects: [subject] }]
      }
      const share = completeness.get(name)?.complete ?? null
      const percent = share === null ? '' : `${Math.floor(share * 1000) / 10} % of the expected data is stored.`
      const subject = toSubjectResult({
        ...{ ...facts, holds: share !== null && share < (below ?? 1), value: share, threshold: below ?? null },
        describe: () => ({ title: `Dataset ${name}: incomplete`, text: `${percent} ${newestText}` }),
      })
      return [rule.name, { type: 'state', isComplete: share !== null, subjects: share === null ? [] : [subject] }]
    }),
  )
}

export const evaluateProviders: Evaluate<'provider'> = async (rules, { db, now }) => {
  const failing = [...(await readFailing(db))].flatMap(([dataset, providers]) =>
    Object.entries(providers).map(([provider, { since, reason }]) => ({
      ...{ dataset, provider, since: Date.parse(since), reason },
    })),
  )
  return new Map(
    rules.map((rule): [string, Result] => {
      const { provider, dataset, failingFor } = rule.what
      const subjects = failing
        .filter((one) => provider === undefined || one.provider === provider)
        .filter((one) => dataset === undefined || one.dataset === dataset)
        .map((one) =>
          toSubjectResult({
            ...{ ...NOTHING, request: '/data/status', subject: `${one.dataset} ${one.provider}` },
            ...{ holds: now - one.since >= failingFor, observedAt: one.since },
            describe: () => ({
              title: `Provider ${one.provider} fails for ${one.dataset}`,
              text: `Since ${formatTime(one.since)}: ${one.reason}`,
            }),
          }),
        )
      return [rule.name, { type: 'state', isComplete: true, subjects }]
    }),
  )
}
