import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { DataError } from '../../shared/errors.ts'
import type { Database } from '../../shared/store/store.ts'
import { deliver, findDue } from '../../workers/alerts/delivery.ts'
import { evaluateGroup, toGroups } from '../../workers/alerts/evaluation.ts'
import { parseRules } from '../../workers/alerts/rules-file.ts'
import { createSend } from '../../workers/alerts/send.ts'
import { createAlertStore } from '../../workers/alerts/state.ts'
import { type AlertStage, openAlertStage, type Received, type Reply, WEBHOOK_SECRET } from '../support/alerts.ts'
import { storeQuotes } from '../support/quotes.ts'
import { createRandom } from '../support/random.ts'
import { silent } from '../support/silent.ts'

const SEED = Number(process.env.FAULTS_SEED ?? 1)
const FAULTS = Number(process.env.ALERT_FAULTS ?? 60)
const LEVEL = 10

let stage: AlertStage
beforeEach(async () => {
  stage = await openAlertStage()
})
afterEach(() => stage.close())

class Killed extends DataError {
  constructor() {
    super('storage', 'the process was killed')
  }
}

/** A database whose process dies at random, before an insert or after it. */
function withDeaths(db: Database, isDue: () => boolean): Database {
  return {
    ...db,
    insert: async (rows) => {
      if (isDue()) throw new Killed()
      await db.insert(rows)
      if (isDue()) throw new Killed()
    },
  }
}

describe('alerts under faults', () => {
  it(`deliver every due message, repeats under the first id, and nothing that never held (seed ${SEED})`, async () => {
    const { next: random } = createRandom(SEED)
    const { database, registry, receiver, clock } = stage
    let faults = 0
    const isFault = (share: number) => {
      const isDue = faults < FAULTS && random() < share
      if (isDue) faults += 1
      return isDue
    }
    // Without Redis from the beginning: an emptied Redis has no less than this.
    const db = withDeaths(database.db, () => isFault(0.15))
    const store = createAlertStore(db)
    const hook = { type: 'webhook', url: receiver.url, secrets: [WEBHOOK_SECRET] }
    const what = { kind: 'level', series: 'price', above: LEVEL }
    const rules = [
      { name: 'above', what, who: { names: ['UNI', 'AAVE'] }, to: ['hook'] },
      { name: 'digest', what, who: { names: ['UNI'] }, to: ['hook'], digest: 'hourly' },
    ]
    const file = parseRules(JSON.stringify({ channels: { hook }, rules }), 'alerts.json', () => undefined)
    const [group] = toGroups(file.rules).values()
    if (group === undefined) throw new Error('no group')
    const accepted: Received[] = []
    receiver.reply = (request): Reply => {
      const pick = isFault(0.3) ? Math.floor(random() * 4) : 4
      // An answer that is lost after the receiver has accepted the message.
      if (pick !== 1 && pick !== 2) accepted.push(request)
      const wait = { 'retry-after': '30' }
      return ['hang', { status: 500 }, { status: 429, headers: wait }, 'hang', { status: 204 }][pick] as Reply
    }
    const untilDone = async <T>(work: () => Promise<T>): Promise<T> => {
      for (;;) {
        try {
          return await work()
        } catch (error) {
          if (!(error instanceof Killed)) throw error
          clock.now += 1_000
        }
      }
    }
    const now = () => clock.now
    const context = {
      ...{ store, channels: () => file.channels, publicUrl: 'https://data.example.org', log: silent, now },
      ...{ send: createSend(['127.0.0.0/8'], 100), redact: (text: string) => text },
    }
    const deliverDue = async () => {
      const due = await untilDone(() => findDue(store, clock.now))
      for (const { nextTryAt, ...key } of due)
        if (nextTryAt <= clock.now) await untilDone(() => deliver(key, context, new AbortController().signal))
    }
    const evaluate = () => untilDone(() => evaluateGroup(group, { db, store, registry, apiUrl: '', now: clock.now }))

    const tokens = ['UNI', 'AAVE'].map((symbol) => registry.tokens.find((one) => one.symbol === symbol && one.live))
    const prices = [9, 9]
    const expected = { above: 0, digest: 0 }
    const setPrices = async () => {
      clock.now += 60_000
      const quotes = tokens.map((token, at) => ({ token: token?.key ?? 0, at: clock.now - 1, price: prices[at] ?? 0 }))
      await storeQuotes(
        database.db,
        quotes.map((quote) => ({ ...quote, is_latest: true })),
      )
      await evaluate()
    }
    await setPrices()
    while (faults < FAULTS) {
      for (const at of [0, 1]) {
        const price = random() < 0.5 ? 5 + Math.floor(random() * 5) : 11 + Math.floor(random() * 5)
        if (price > LEVEL && (prices[at] ?? 0) <= LEVEL) {
          expected.above += 1
          if (at === 0) expected.digest += 1
        }
        prices[at] = price
      }
      await setPrices()
      await deliverDue()
    }
    // No more faults: remaining messages are delivered within a day.
    for (let hour = 0; hour < 24; hour++) {
      clock.now += 3_600_000
      await deliverDue()
    }

    expect(await store.readDead()).toEqual([])
    expect(await store.readPending(clock.now)).toEqual([])
    const bodies = new Map<unknown, Set<string>>()
    const alerts = new Map<string, { rule: string; values: { value: number } }>()
    for (const { headers, body } of accepted) {
      const id = headers['webhook-id']
      bodies.set(id, (bodies.get(id) ?? new Set()).add(body))
      const { data } = JSON.parse(body) as {
        data: { alerts: { _id: string; rule: string; values: { value: number } }[] }
      }
      for (const alert of data.alerts) alerts.set(alert._id, alert)
    }
    // Repeats have the same id and the same body.
    expect([...bodies.values()].filter(({ size }) => size !== 1)).toEqual([])
    const countOf = (rule: string) => [...alerts.values()].filter((alert) => alert.rule === rule).length
    expect({ above: countOf('above'), digest: countOf('digest') }).toEqual(expected)
    expect([...alerts.values()].filter(({ values }) => values.value <= LEVEL)).toEqual([])
    // Each alert of a digest is in one message only.
    const inDigests = [...bodies.values()].flatMap((one) => {
      const [body = '{}'] = one
      const { type, data } = JSON.parse(body) as { type: string; data: { alerts: { _id: string }[] } }
      return type === 'alert.digest' ? data.alerts.map(({ _id }) => _id) : []
    })
    expect(new Set(inDigests).size).toBe(inDigests.length)
  })
})
