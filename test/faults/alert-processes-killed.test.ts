import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { HOUR_MS } from '../../shared/intervals.ts'
import { type Child, startChild, untilReady } from '../../tools/children.ts'
import { type AlertStage, openAlertStage, type Received, type Reply } from '../support/alerts.ts'
import { storeQuotes } from '../support/quotes.ts'
import { createRandom } from '../support/random.ts'
import { toStoreSettings } from '../support/store-settings.ts'

const SEED = Number(process.env.FAULTS_SEED ?? 1)
/** `npm run test:long` sets more slots. */
const SLOTS = Number(process.env.STORM_SLOTS ?? 10)
const PROCESSES = 2
const LEVEL = 10
/** The latest time of a kill or of an emptied Redis after the change event of a slot. */
const LONGEST_WAIT_MS = 400
const TICK_MS = 150

let stage: AlertStage
const children: Child[] = []
const replacements: Promise<void>[] = []
beforeEach(async () => {
  stage = await openAlertStage()
})
afterEach(async () => {
  await Promise.allSettled(replacements)
  await Promise.all(children.map(kill))
  await stage.close()
})

async function kill(child: Child): Promise<void> {
  child.process.kill('SIGKILL')
  if (child.process.exitCode === null && child.process.signalCode === null) await once(child.process, 'exit')
}

async function start(): Promise<void> {
  const environment = {
    ...toStoreSettings(stage.config),
    ...{ ALERTS_FILE: stage.file, ALERTS_PRIVATE_NETWORKS: '127.0.0.0/8', PUBLIC_URL: 'https://data.example.org' },
    LOG_LEVEL: process.env.FAULTS_LOG_LEVEL ?? 'silent',
  }
  const file = join(import.meta.dirname, 'alert-part.ts')
  const child = startChild('alerts', file, environment, [String(stage.clock.now)])
  children.push(child)
  try {
    await untilReady(child)
  } catch (error) {
    // The process may be killed before it is ready.
    if (child.process.signalCode !== 'SIGKILL') throw error
  }
}

/** Ends a process like a crash and starts another one. */
async function replace(index: number): Promise<void> {
  const [child] = children.splice(index % children.length, 1)
  if (child !== undefined) await kill(child)
  await start()
}

/** Sets the clock of all processes, and enqueues what is due, until the condition is true. */
async function tickUntil(isDone: () => Promise<boolean>): Promise<void> {
  while (!(await isDone())) {
    for (const child of children) child.process.send({ now: stage.clock.now }, () => undefined)
    await wait(TICK_MS)
  }
}

interface Alert {
  readonly _id: string
  readonly rule: string
  readonly entity: { readonly id: string }
  readonly values: { readonly observedAt: string; readonly value: number }
}

const toAlerts = ({ body }: Received) => (JSON.parse(body) as { data: { alerts: Alert[] } }).data.alerts
const toCrossing = ({ rule, entity, values }: Alert) => `${rule} ${entity.id} ${values.observedAt}`

describe('alerts of killed processes', () => {
  it(`arrive under their first id, and none about what never held (seed ${SEED})`, async () => {
    const random = createRandom(SEED)
    const { database, registry, receiver, clock, store } = stage
    const startedAt = performance.now()
    const counts = { kills: 0, flushes: 0, answers: 0, down: 0 }
    let hasFaults = true
    const accepted: Received[] = []
    receiver.reply = (request): Reply => {
      const replies: Reply[] = [
        { status: 500 },
        { status: 429, headers: { 'retry-after': '30' } },
        { status: 204, afterMs: 500 },
      ]
      const isFault = hasFaults && random.chance(0.4)
      const reply: Reply = isFault ? random.pick(replies) : { status: 204 }
      if (isFault) counts.answers += 1
      if (reply !== 'hang' && reply.status === 204) accepted.push(request)
      return reply
    }
    const what = { kind: 'level', series: 'price', above: LEVEL }
    stage.setRules([
      { name: 'above', what, who: { names: ['UNI', 'AAVE'] }, to: ['hook'] },
      { name: 'digest', what, who: { names: ['UNI'] }, to: ['hook'], digest: 'hourly' },
    ])
    const tokens = ['UNI', 'AAVE'].map(
      (symbol) => registry.tokens.find((one) => one.symbol === symbol && one.live) ?? expect.fail(symbol),
    )
    const prices = new Map(tokens.map(({ id }) => [id, 9]))
    const storePrices = async () => {
      clock.now += 300_000
      const at = clock.now - 1_000
      const quotes = tokens.map(({ id, key }) => ({ token: key, at, price: prices.get(id) ?? 0, is_latest: true }))
      await storeQuotes(database.db, quotes)
      return new Date(at).toISOString()
    }
    const isEvaluated = async () => {
      const states = [...(await store.readStates(['above', 'digest'], clock.now)).values()]
      const subjects = states.flatMap((own) => [...own.values()])
      const isRight = subjects.every(({ subject, holds }) => holds === (prices.get(subject) ?? 0) > LEVEL)
      return subjects.length === 3 && isRight && (await store.readRules()).size === 2
    }
    await storePrices()
    await Promise.all(Array.from({ length: PROCESSES }, start))
    await tickUntil(isEvaluated)

    const expected: string[] = []
    for (let slot = 0; slot < SLOTS; slot++) {
      const crossed: string[] = []
      for (const [index, { id }] of tokens.entries()) {
        const price = random.chance(0.5) ? 5 + random.below(5) : 11 + random.below(5)
        const hasCrossed = price > LEVEL && (prices.get(id) ?? 0) <= LEVEL
        if (hasCrossed) crossed.push(`above ${id}`, ...(index === 0 ? [`digest ${id}`] : []))
        prices.set(id, price)
      }
      const isDown = slot === 3 || random.chance(0.2)
      if (isDown) {
        counts.down += 1
        await receiver.setDown(true)
      }
      const observedAt = await storePrices()
      expected.push(...crossed.map((one) => `${one} ${observedAt}`))
      await stage.commit('prices')
      if (slot === 1 || random.chance(0.6)) {
        counts.kills += 1
        await wait(random.next() * LONGEST_WAIT_MS)
        replacements.push(replace(random.below(PROCESSES)))
      }
      if (slot === 2 || random.chance(0.4)) {
        counts.flushes += 1
        await wait(random.next() * LONGEST_WAIT_MS)
        await stage.emptyRedis()
      }
      await tickUntil(isEvaluated)
      if (isDown) await receiver.setDown(false)
    }
    await Promise.all(replacements)
    hasFaults = false
    const untilSent = async () => (await store.readPending(clock.now)).length === 0
    // Waiting jobs of Redis have the delays of the system's clock.
    for (let hours = 0; hours < 12; hours += 4) {
      clock.now += 4 * HOUR_MS
      await stage.emptyRedis()
      await tickUntil(untilSent)
    }
    const seconds = Math.round((performance.now() - startedAt) / 1000)
    const { kills, flushes, answers, down } = counts
    console.log(
      `${kills} kills, ${flushes} flushes, ${answers} bad answers, ${down} times down in ${SLOTS} slots, ${seconds} s; FAULTS_SEED=${SEED}`,
    )

    expect(await store.readDead()).toEqual([])
    const alerts = accepted.flatMap(toAlerts)
    expect([...new Set(alerts.map(toCrossing))].sort()).toEqual(expected.sort())
    expect(alerts.filter(({ values }) => values.value <= LEVEL)).toEqual([])
    // One id for each crossing, and one body for each id of a message.
    expect(new Set(alerts.map(({ _id }) => _id)).size).toBe(expected.length)
    const messages = new Set(accepted.map(({ headers, body }) => `${headers['webhook-id']} ${body}`))
    expect(messages.size).toBe(new Set(accepted.map(({ headers }) => headers['webhook-id'])).size)
  })
})
