import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { z } from 'zod'
import { ADDRESSES } from '../../api/pages/explorer.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { createDatabase, type Database } from '../../shared/store/store.ts'
import type { ConditionContext, Facts, Result } from '../../workers/alerts/conditions/condition.ts'
import { evaluateConditions } from '../../workers/alerts/conditions.ts'
import type { What } from '../../workers/alerts/rules.ts'
import { parseRules } from '../../workers/alerts/rules-file.ts'
import { LIST_PATHS, SERIES_NAMES } from '../../workers/alerts/series.ts'
import { createTestConfig } from '../support/database.ts'
import { DEMO_NOW, type Demo, startDemo } from '../support/demo.ts'

let demo: Demo
let db: Database
let context: ConditionContext
beforeAll(async () => {
  demo = await startDemo()
  db = createDatabase(createTestConfig({ CLICKHOUSE_DATABASE: inject('stores').demo }).clickhouse, 'read')
  context = { db, registry: loadRegistry(), apiUrl: demo.url, now: DEMO_NOW }
})
afterAll(async () => {
  await demo?.close()
  await db?.close()
})

type Subject = Facts & { readonly subject: string }
function toSubjects(result: Result | undefined): readonly Subject[] {
  if (result?.type === 'state')
    return result.subjects.map(({ subject, holds, toFacts }) => ({ ...toFacts(), subject, holds }))
  return result?.type === 'events' ? result.events : (result?.subjects ?? [])
}

/** The content of the alerts of a rule, for every subject of it. */
async function evaluate(what: object): Promise<readonly Subject[]> {
  const text = JSON.stringify({ rules: [{ name: 'one', what }] })
  const { rules } = parseRules(text, 'alerts.json', () => undefined)
  const results = await evaluateConditions((what as What).kind, rules, context)
  return toSubjects(results.get('one'))
}

/** Opens the link to the data, and checks that the page has the link to it. */
async function open({ request, page }: Subject): Promise<string> {
  const answer = await fetch(`${demo.url}${request}`)
  const body = await answer.text()
  expect(answer.status, `${request}: ${body}`).toBe(200)
  if (page !== null) expect(page).toMatch(ADDRESSES)
  return body
}

const numbersIn = (body: string) => [...body.matchAll(/-?\d+(?:\.\d+)?(?:e[+-]?\d+)?/g)].map(([text]) => Number(text))

describe('the links of an alert', () => {
  it.each(SERIES_NAMES)('show the value of a level of %s', async (series) => {
    const subjects = await evaluate({ kind: 'level', series, above: -1 })
    const [first] = subjects.filter(({ request }) => request !== null)
    if (first === undefined) throw new Error(`the demo has no ${series}`)
    const value = first.value ?? Number.NaN
    const body = await open(first)
    const isShown = numbersIn(body).some((one) => Math.abs(one - value) <= Math.abs(value) * 1e-6)
    expect(isShown, `${first.request}: ${value} is not in ${body}`).toBe(true)
  })

  it('show both values of a move', async () => {
    const [first] = await evaluate({ kind: 'move', series: 'price', percent: 0.001, within: '1d' })
    if (first === undefined) throw new Error('the demo has no moves')
    const numbers = numbersIn(await open(first))
    for (const value of [first.value, first.before])
      expect(numbers.some((one) => Math.abs(one - Number(value)) <= Number(value) * 1e-6)).toBe(true)
  })

  it.each(LIST_PATHS)('show the record that entered or left the list %s', async (list) => {
    const answer = await fetch(`${demo.url}${list}?limit=1`)
    const [{ name }] = z.tuple([z.object({ name: z.string() })]).parse(await answer.json())
    const subjects = await evaluate({ kind: 'list', list, filter: [`name!=${name}`], on: 'both' })
    const isIn = (one: Subject) => 'holds' in one && one.holds === true
    for (const subject of [subjects.find(isIn), subjects.find(({ entity }) => entity?.name === name)]) {
      if (subject === undefined) throw new Error('the demo has no such record')
      expect(JSON.parse(await open(subject))).toMatchObject([{ _id: subject.entity?.id }])
    }
  })

  it.each([
    ['Snapshot', false],
    ['a governor', true],
  ])('show a proposal on %s', async (_what, isOnGovernor) => {
    const subjects = await evaluate({ kind: 'proposal', on: 'created' })
    const sql = 'SELECT DISTINCT id FROM dao_proposals WHERE match(space, {governor: String}) = {is: Bool}'
    const params = { governor: '^eip155:', is: isOnGovernor }
    const rows = await db.rows({ name: 'test-proposals', sql, params, schema: z.object({ id: z.string() }) })
    const ids = new Set(rows.map(({ id }) => id))
    const subject = subjects.find((one) => ids.has(one.subject))
    if (subject === undefined) throw new Error('the demo has no such proposal')
    expect(JSON.parse(await open(subject))).toMatchObject([{ _id: subject.subject }])
    expect(subject.page).toBe(`/daos/${subject.entity?.id}/proposals/${subject.subject}`)
  })

  it('show the days of a treasury', async () => {
    const [first] = await evaluate({ kind: 'treasury', movedUsd: 1 })
    if (first === undefined) throw new Error('the demo has no movements')
    expect(await open(first)).toContain(new Date(first.observedAt ?? 0).toISOString().slice(0, 10))
  })

  it.each(['stale', 'incomplete', 'corrected'])('show a dataset that is %s', async (is) => {
    const [first] = await evaluate({ kind: 'dataset', dataset: 'prices', is, ...(is === 'incomplete' && { below: 1 }) })
    if (first === undefined) throw new Error('the demo has no such dataset')
    expect(await open(first)).toContain('"dataset":"prices"')
  })
})
