import { writeFileSync } from 'node:fs'
import { Webhook } from 'standardwebhooks'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { HOUR_MS } from '../../shared/intervals.ts'
import { createAlertStore } from '../../workers/alerts/state.ts'
import { type AlertStage, openAlertStage, titlesOf, WEBHOOK_SECRET } from '../support/alerts.ts'
import { storeQuotes } from '../support/quotes.ts'

let stage: AlertStage
beforeEach(async () => {
  stage = await openAlertStage()
})
afterEach(() => stage.close())

const findToken = (symbol: string) => {
  const token = stage.registry.tokens.find((one) => one.symbol === symbol && one.live)
  return token ?? expect.fail(`no token ${symbol}`)
}

/** Moves the clock by five minutes, stores a quote and announces it. */
async function quote(symbol: string, price: number): Promise<void> {
  // An evaluation of the slot before must not see the new time without the new price.
  await stage.untilIdle()
  stage.clock.now += 300_000
  await storeQuotes(stage.database.db, [
    { token: findToken(symbol).key, at: stage.clock.now - 1_000, price, is_latest: true },
  ])
  await stage.commit('prices')
}

const untilActive = (...rules: string[]) =>
  expect
    .poll(async () =>
      [...(await stage.store.readRules()).values()]
        .flatMap(({ rule, state }) => (state === 'active' ? [rule] : []))
        .sort(),
    )
    .toEqual(rules.sort())

const untilState = (rule: string, holds: boolean) =>
  expect
    .poll(async () =>
      [...(await stage.store.readStates([rule], stage.clock.now)).values()].flatMap((own) =>
        [...own.values()].map((one) => one.holds),
      ),
    )
    .toEqual([holds])

const LEVEL = {
  name: 'uni-above-10',
  what: { kind: 'level', series: 'price', above: 10 },
  who: { names: ['UNI'] },
  to: ['hook'],
}

describe('a rule about a level', () => {
  it('sends a signed webhook when the series crosses the level, once per crossing', async () => {
    stage.setRules([LEVEL])
    await quote('UNI', 9)
    await stage.start()
    await untilActive('uni-above-10')
    await quote('UNI', 11)
    await expect.poll(() => stage.receiver.received.length).toBe(1)
    const [first] = stage.receiver.received
    const uni = findToken('UNI')
    // The library rejects old messages by the system's clock.
    vi.setSystemTime(stage.clock.now)
    const body = new Webhook(WEBHOOK_SECRET).verify(first?.body ?? '', first?.headers as Record<string, string>)
    vi.useRealTimers()
    expect(body).toEqual({
      type: 'alert.fired',
      timestamp: new Date(stage.clock.now).toISOString(),
      data: {
        rule: 'uni-above-10',
        alerts: [
          {
            _id: first?.headers['webhook-id'],
            rule: 'uni-above-10',
            firedAt: new Date(stage.clock.now).toISOString(),
            title: `${uni.name}: Price above $10`,
            text: `Price is $11 at ${new Date(stage.clock.now - 1_000).toISOString().slice(0, 16).replace('T', ' ')} UTC. The level is $10.`,
            entity: { type: 'token', id: uni.id, name: uni.name },
            values: {
              observedAt: new Date(stage.clock.now - 1_000).toISOString(),
              value: 11,
              before: null,
              threshold: 10,
              unit: 'USD',
            },
            url: `https://data.example.org/tokens/${uni.id}`,
            request: `https://data.example.org/data/tokens/historic-financial?id=${uni.id}&interval=5m&start=2024-05-06T07%3A00%3A00Z&end=2024-05-06T08%3A00%3A00Z`,
          },
        ],
      },
    })
    await quote('UNI', 12)
    await quote('UNI', 8)
    await untilState('uni-above-10', false)
    expect(stage.receiver.received).toHaveLength(1)
    await quote('UNI', 13)
    await expect.poll(() => stage.receiver.received.length).toBe(2)
    expect(new Set(stage.receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(2)
  })

  it('does not fire for a value that was above the level when the rule began', async () => {
    stage.setRules([LEVEL])
    await quote('UNI', 11)
    await stage.start()
    await untilState('uni-above-10', true)
    await quote('UNI', 9)
    await untilState('uni-above-10', false)
    expect(stage.receiver.received).toEqual([])
  })

  it('fires again only after its cooldown', async () => {
    stage.setRules([{ ...LEVEL, cooldown: '1h' }])
    await quote('UNI', 9)
    await stage.start()
    await untilActive('uni-above-10')
    await quote('UNI', 11)
    await expect.poll(() => stage.receiver.received.length).toBe(1)
    await quote('UNI', 9)
    await untilState('uni-above-10', false)
    await quote('UNI', 11)
    await untilState('uni-above-10', true)
    await quote('UNI', 9)
    await untilState('uni-above-10', false)
    expect(stage.receiver.received).toHaveLength(1)
    stage.clock.now += HOUR_MS
    await quote('UNI', 11)
    await expect.poll(() => stage.receiver.received.length).toBe(2)
  })
})

/** Stores prices of the past again, by minutes before now, and the change of history. */
async function correct(symbol: string, prices: Readonly<Record<number, number>>): Promise<void> {
  const { database, clock } = stage
  const token = findToken(symbol).key
  const quotes = Object.entries(prices).map(([minutes, price]) => ({ token, at: toPast(Number(minutes)), price }))
  const times = quotes.map(({ at }) => at)
  const toIso = (ms: number) => new Date(ms - (ms % 300_000)).toISOString()
  const range = { begins_at: toIso(Math.min(...times)), ends_at: toIso(Math.max(...times) + 300_000) }
  const change = { dataset: 'prices', entity: token, job: 'prices-history', changed_at: new Date().toISOString() }
  // An evaluation that reads the values without the change takes them for new ones.
  await stage.untilEvaluated()
  await database.db.insert({ table: 'history_changes', rows: [{ ...change, ...range }] })
  await storeQuotes(database.db, quotes)
  clock.now += 1
  await stage.commit('prices')
}

/** The time of the quote that `quote` has stored some minutes ago. */
const toPast = (minutes: number) => stage.clock.now - (stage.clock.now % 300_000) - 1_000 - minutes * 60_000

const valuesOf = () =>
  stage.receiver.received.map(({ body }) => {
    const { data } = JSON.parse(body) as {
      data: { alerts: { title: string; values: { observedAt: string; value: number; before: number } }[] }
    }
    const [{ title = '', values } = {}] = data.alerts
    return { title, at: Date.parse(values?.observedAt ?? ''), value: values?.value, before: values?.before }
  })

describe('a correction of history', () => {
  const MOVE = { ...LEVEL, name: 'uni-moves', what: { kind: 'move', series: 'price', percent: 50, within: '10m' } }

  /** Starts a worker, and stores prices below the level over the last 25 minutes. */
  async function openPast(rule: { readonly name: string; readonly what: object; readonly cooldown?: string }) {
    stage.setRules([rule])
    await quote('UNI', 9)
    const alerts = await stage.start()
    await untilActive(rule.name)
    for (let slot = 0; slot < 5; slot++) await quote('UNI', 9)
    return alerts
  }

  it('sends one message about a crossing of the past, also after Redis was emptied', async () => {
    const alerts = await openPast(LEVEL)
    const at = toPast(10)
    await correct('UNI', { 10: 12, 5: 13 })
    await expect.poll(() => stage.receiver.received.length).toBe(1)
    const title = `Correction: ${findToken('UNI').name}: Price above $10`
    expect(valuesOf()).toEqual([{ title, at, value: 12, before: null }])
    await stage.emptyRedis()
    await alerts.tick()
    await quote('UNI', 11)
    await expect
      .poll(() => titlesOf(stage.receiver.received))
      .toEqual([title, `${findToken('UNI').name}: Price above $10`])
  })

  it('fires once, as corrections, about values that are newer than the newest live one', async () => {
    await openPast(LEVEL)
    stage.clock.now += 30 * 60_000
    const [first, second] = [toPast(20), toPast(10)]
    await correct('UNI', { 20: 12, 15: 8, 10: 13, 5: 14 })
    await expect.poll(() => stage.receiver.received.length).toBe(2)
    await untilState('uni-above-10', true)
    const title = `Correction: ${findToken('UNI').name}: Price above $10`
    const sorted = valuesOf().sort((one, other) => one.at - other.at)
    expect(sorted).toMatchObject([{ title, at: first, value: 12 }, { title }])
    expect(sorted[1]?.at).toBeGreaterThanOrEqual(second)
    await correct('UNI', { 5: 14 })
    await stage.untilEvaluated()
    await quote('UNI', 15)
    await quote('UNI', 9)
    await untilState('uni-above-10', false)
    expect(stage.receiver.received).toHaveLength(2)
    await quote('UNI', 11)
    await expect.poll(() => stage.receiver.received.length).toBe(3)
  })

  it('withdraws an alert about a crossing that is gone, and reports the crossing when it is back', async () => {
    await openPast(LEVEL)
    await quote('UNI', 11)
    await expect.poll(() => stage.receiver.received.length).toBe(1)
    await quote('UNI', 9)
    await untilState('uni-above-10', false)
    const at = toPast(5)
    const title = `${findToken('UNI').name}: Price above $10`
    await correct('UNI', { 5: 8 })
    await expect.poll(() => stage.receiver.received.length).toBe(2)
    await correct('UNI', { 5: 12 })
    await expect.poll(() => stage.receiver.received.length).toBe(3)
    await correct('UNI', { 5: 7 })
    await expect.poll(() => stage.receiver.received.length).toBe(4)
    expect(valuesOf()).toEqual([
      { title, at, value: 11, before: null },
      { title: `Correction: withdrawn: ${title}`, at, value: 8, before: 11 },
      { title: `Correction: ${title}`, at, value: 12, before: null },
      { title: `Correction: withdrawn: ${title}`, at, value: 7, before: 12 },
    ])
  })

  it('sends nothing about known crossings, those in a cooldown, and those before the rule began', async () => {
    await openPast({ ...LEVEL, cooldown: '15m' })
    await quote('UNI', 11)
    await expect.poll(() => stage.receiver.received.length).toBe(1)
    for (const price of [9, 11, 9]) {
      await quote('UNI', price)
      await untilState('uni-above-10', price > 10)
    }
    await quote('UNI', 9)
    // The crossing 20 minutes ago, the suppressed one 10 minutes ago, and one an hour ago.
    await correct('UNI', { 75: 9, 60: 12, 55: 9, 20: 14, 15: 9, 10: 13, 5: 9 })
    await correct('AAVE', { 10: 12 })
    await quote('UNI', 12)
    await expect.poll(() => stage.receiver.received.length).toBe(2)
    expect(valuesOf().map(({ value }) => value)).toEqual([11, 12])
  })

  it('says in a message about the newest value that history was corrected', async () => {
    await openPast(MOVE)
    await correct('UNI', { 5: 4 })
    await expect.poll(() => stage.receiver.received.length).toBe(1)
    const title = `Correction: ${findToken('UNI').name}: Price +125.0 % within 10 min`
    expect(titlesOf(stage.receiver.received)).toEqual([title])
  })

  it('withdraws an alert about a move that did not happen', async () => {
    await openPast(MOVE)
    await quote('UNI', 20)
    await expect.poll(() => stage.receiver.received.length).toBe(1)
    await quote('UNI', 20)
    await quote('UNI', 20)
    await quote('UNI', 20)
    await untilState('uni-moves', false)
    await correct('UNI', { 30: 20, 25: 20, 20: 20, 15: 20 })
    await expect.poll(() => titlesOf(stage.receiver.received)[1]).toMatch(/^Correction: withdrawn: .*: Price \+122.2 %/)
  })
})

describe('a digest', () => {
  it('sends the firings of an hour as one message after its end', async () => {
    stage.setRules([{ ...LEVEL, who: { names: ['UNI', 'AAVE'] }, digest: 'hourly' }])
    await quote('UNI', 9)
    await quote('AAVE', 9)
    const alerts = await stage.start()
    await untilActive('uni-above-10')
    await quote('UNI', 11)
    await quote('AAVE', 11)
    await expect.poll(async () => (await stage.store.readPending(stage.clock.now + HOUR_MS)).length).toBe(2)
    await alerts.tick()
    expect(stage.receiver.received).toEqual([])
    stage.clock.now += HOUR_MS
    await alerts.tick()
    await expect.poll(() => stage.receiver.received.length).toBe(1)
    expect(titlesOf(stage.receiver.received)).toHaveLength(2)
    expect(JSON.parse(stage.receiver.received[0]?.body ?? '')).toMatchObject({ type: 'alert.digest' })
  })
})

describe('delivery', () => {
  it('repeats a refused message under its first id until the receiver accepts it', async () => {
    stage.setRules([LEVEL])
    await quote('UNI', 9)
    const alerts = await stage.start()
    await untilActive('uni-above-10')
    stage.receiver.reply = () => ({ status: 503, headers: { 'retry-after': '60' } })
    await quote('UNI', 11)
    await expect
      .poll(async () =>
        (await stage.store.readPending(stage.clock.now)).map(({ attempts, reason }) => ({ attempts, reason })),
      )
      .toEqual([{ attempts: 1, reason: 'status 503' }])
    const [pending] = await stage.store.readPending(stage.clock.now)
    expect(pending?.nextTryAt).toBe(stage.clock.now + 60_000)
    stage.receiver.reply = () => ({ status: 200 })
    await stage.emptyRedis()
    stage.clock.now += 61_000
    await alerts.tick()
    await expect.poll(() => stage.receiver.received.length).toBe(2)
    const ids = stage.receiver.received.map(({ headers }) => headers['webhook-id'])
    expect(ids[1]).toBe(ids[0])
    expect(stage.receiver.received[1]?.body).toBe(stage.receiver.received[0]?.body)
    await expect.poll(() => stage.store.readPending(stage.clock.now)).toEqual([])
  })

  it('makes a dead letter of a message after a day, or at once if the receiver is gone', async () => {
    stage.setRules([LEVEL])
    await quote('UNI', 9)
    const alerts = await stage.start()
    await untilActive('uni-above-10')
    stage.receiver.reply = () => ({ status: 500 })
    await quote('UNI', 11)
    await expect.poll(async () => (await stage.store.readPending(stage.clock.now))[0]?.attempts).toBe(1)
    stage.clock.now += 25 * HOUR_MS
    await stage.emptyRedis()
    await alerts.tick()
    await expect
      .poll(async () => (await stage.store.readDead()).map(({ attempts, reason }) => ({ attempts, reason })))
      .toEqual([{ attempts: 2, reason: 'status 500' }])
    stage.receiver.reply = () => ({ status: 410 })
    await quote('UNI', 9)
    await untilState('uni-above-10', false)
    await quote('UNI', 11)
    await expect.poll(async () => (await stage.store.readDead()).length).toBe(2)
  })

  it('refuses a private address that is not allowed', async () => {
    stage.setRules([{ ...LEVEL, to: ['inside'] }], { inside: { type: 'slack', url: 'http://10.0.0.1/hook' } })
    await quote('UNI', 9)
    await stage.start()
    await untilActive('uni-above-10')
    await quote('UNI', 11)
    await expect
      .poll(async () => (await stage.store.readDead())[0]?.reason)
      .toMatch(/10\.0\.0\.1 is the private address/)
  })
})

describe('a worker whose clock is ahead', () => {
  it('loses no crossing of the other workers, which evaluate after it', async () => {
    stage.setRules([LEVEL])
    await quote('UNI', 9)
    const ahead = await stage.start({ aheadMs: 600_000 })
    await untilActive('uni-above-10')
    await quote('UNI', 11)
    await expect.poll(() => stage.receiver.received.length).toBe(1)
    await quote('UNI', 9)
    await untilState('uni-above-10', false)
    await ahead.stop()
    await stage.start()
    for (const expected of [2, 3, 4]) {
      await quote('UNI', 11)
      await expect.poll(() => stage.receiver.received.length).toBe(expected)
      await quote('UNI', 9)
      await untilState('uni-above-10', false)
    }
  })

  it('compares it before an evaluation, so no alert is of the future', async () => {
    stage.setRules([LEVEL])
    await quote('UNI', 9)
    await stage.start({ aheadMs: 600_000, isCompared: true })
    await untilActive('uni-above-10')
    await quote('UNI', 11)
    await expect.poll(() => stage.receiver.received.length).toBe(1)
    const [fired] = await stage.store.readRecorded(['uni-above-10'], 0)
    expect(fired?.firedAt).toBe(stage.clock.now)
  })
})

describe('the stored state', () => {
  const state = { rule: 'uni', revision: 'r', subject: 'x', value: null, firings: 1, firedAt: 0 }
  const read = async (now: number) => (await stage.store.readStates(['uni'], now)).get('uni r')?.get('x')

  it('is that of the latest evaluation, also if an earlier one stores its own later', async () => {
    const { store, clock } = stage
    await store.writeStates([{ ...state, holds: false }], clock.now + 1)
    await store.writeStates([{ ...state, holds: true }], clock.now)
    expect(await read(clock.now)).toMatchObject({ holds: false, value: null })
    await store.writeStates([{ ...state, holds: true, value: 2 }], clock.now + 2)
    expect(await read(clock.now)).toMatchObject({ holds: true, value: 2 })
  })

  it('includes a subject that another process stores later with an earlier time', async () => {
    const { store, clock } = stage
    await store.writeStates([{ ...state, holds: true }], clock.now)
    expect(await read(clock.now)).toMatchObject({ holds: true })
    await createAlertStore(stage.database.db).writeStates([{ ...state, subject: 'y', holds: true }], clock.now - 60_000)
    const own = (await store.readStates(['uni'], clock.now)).get('uni r')
    expect([...(own?.keys() ?? [])].sort()).toEqual(['x', 'y'])
  })

  it('stays for an evaluation as it was read, while other evaluations read newer ones', async () => {
    const { store, clock } = stage
    const [one, began] = [{ rule: 'uni', revision: 'r', state: 'active', beganAt: 0 } as const, clock.now]
    await store.writeRules([{ ...one, kind: 'level', description: '' }], began)
    await store.writeStates([{ ...state, holds: true }], began)
    const [rules, states] = [await store.readRules(), await store.readStates(['uni'], began)]
    await store.writeStates([{ ...state, holds: false }], began + 1)
    await stage.database.db.command({ name: 'empty', sql: 'TRUNCATE TABLE alert_rules' })
    expect((await store.readRules()).get('uni')).toBeUndefined()
    expect(await read(began)).toMatchObject({ holds: false })
    expect(rules.get('uni')).toEqual(one)
    expect(states.get('uni r')?.get('x')).toMatchObject({ holds: true })
  })

  it('is read again after its table was emptied', async () => {
    const { store, clock } = stage
    await store.writeStates([{ ...state, holds: true }], clock.now)
    expect(await read(clock.now)).toMatchObject({ holds: true })
    await stage.database.db.command({ name: 'empty', sql: 'TRUNCATE TABLE alert_states' })
    expect(await read(clock.now)).toBeUndefined()
  })
})

describe('rules', () => {
  it.each(['', '{"rules": ['])('stay active while the file is %j, and also fire for that time', async (half) => {
    stage.setRules([LEVEL])
    await quote('UNI', 9)
    const alerts = await stage.start()
    await untilActive('uni-above-10')
    writeFileSync(stage.file, half)
    await alerts.tick()
    await stage.untilIdle()
    const [stored] = (await stage.store.readRules()).values()
    expect(stored).toMatchObject({ rule: 'uni-above-10', state: 'active' })
    await quote('UNI', 11)
    await expect.poll(() => stage.receiver.received.length).toBe(1)
  })

  it('are not removed by a worker that starts with an empty file', async () => {
    stage.setRules([LEVEL])
    await quote('UNI', 9)
    const first = await stage.start()
    await untilActive('uni-above-10')
    await first.stop()
    writeFileSync(stage.file, '')
    const second = await stage.start()
    await second.tick()
    expect((await stage.store.readRules()).get('uni-above-10')).toMatchObject({ state: 'active' })
    await quote('UNI', 11)
    stage.setRules([LEVEL])
    await second.tick()
    await expect.poll(() => stage.receiver.received.length).toBe(1)
  })

  it('are loaded again when the file changes, and removed ones are stored as removed', async () => {
    stage.setRules([LEVEL])
    await quote('UNI', 9)
    const alerts = await stage.start()
    await untilActive('uni-above-10')
    stage.setRules([
      { ...LEVEL, name: 'other' },
      { ...LEVEL, name: 'idle', paused: true },
    ])
    await alerts.tick()
    await untilActive('other')
    const states = [...(await stage.store.readRules()).values()].map(({ rule, state }) => [rule, state])
    expect(Object.fromEntries(states)).toEqual({ 'uni-above-10': 'removed', other: 'active', idle: 'paused' })
    await quote('UNI', 11)
    await expect.poll(() => stage.receiver.received.length).toBe(1)
    expect(JSON.parse(stage.receiver.received[0]?.body ?? '')).toMatchObject({ data: { rule: 'other' } })
  })
})
