import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { publishChange } from '../../shared/store/store.ts'
import { createMetrics } from '../../shared/telemetry/metrics.ts'
import { startAlerts } from '../../workers/alerts/alerts.ts'
import { createAlertStore } from '../../workers/alerts/state.ts'
import { WEBHOOK_SECRET } from '../support/alerts.ts'
import { storeQuotes } from '../support/quotes.ts'
import { silent } from '../support/silent.ts'
import { atMost, type Benchmark } from './define-benchmark.ts'
import { toMedian } from './measure.ts'
import { withStack } from './stack.ts'

const RULES = 10_000
/** The share of rules that fire at a tick. */
const FIRING_SHARE = 0.01
const TICKS = 5

/** The time from the change event of a slot of prices to the POST of each alert that it fires. */
export const alerts: Benchmark = {
  name: 'alerts',
  about: 'The time from the change event of a slot to the POST of an alert at its receiver.',
  run: ({ quick, say }) =>
    withStack('alerts', async ({ database: { config, registry, db }, redis, prefix }) => {
      const count = quick ? 200 : RULES
      const arrivals: number[] = []
      const receiver = createServer((request, response) => {
        arrivals.push(performance.now())
        request.resume().on('end', () => response.writeHead(204).end())
      })
      await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
      const dir = mkdtempSync(join(tmpdir(), 'bench-alerts-'))
      const file = join(dir, 'alerts.json')
      const tokens = registry.tokens.filter(({ live }) => live)
      const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`
      const firing = Math.ceil(count * FIRING_SHARE)
      const rules = Array.from({ length: count }, (_, index) => ({
        name: `rule-${index}`,
        what: { kind: 'level', series: 'price', above: index < firing ? 10 : 1_000 },
        who: { ids: [tokens[index % tokens.length]?.id] },
        to: ['hook'],
      }))
      const hook = { type: 'webhook', url, secrets: [WEBHOOK_SECRET] }
      writeFileSync(file, JSON.stringify({ channels: { hook }, rules }))
      let now = Date.parse('2024-05-06T07:00:00Z')
      const tick = async (price: number) => {
        now += 300_000
        await storeQuotes(
          db,
          tokens.map(({ key }) => ({ token: key, at: now - 1_000, price, is_latest: true })),
        )
        const at = performance.now()
        await publishChange({ db, redis, prefix }, { dataset: 'prices' })
        return at
      }
      await tick(9)
      const store = createAlertStore(db)
      const own = {
        ...config,
        alerts: { ...config.alerts, privateNetworks: ['127.0.0.0/8'] },
        redis: { url: redisUrl(redis), prefix },
      }
      const alerts = await startAlerts(
        {
          config: own,
          db,
          redis,
          registry,
          log: silent,
          now: () => now,
          metrics: createMetrics('bench'),
          redact: String,
        },
        file,
      )
      const until = async (isDone: () => Promise<boolean> | boolean) => {
        while (!(await isDone())) await new Promise((resolve) => setTimeout(resolve, 20))
      }
      try {
        await until(async () => (await store.readRules()).size === count)
        const delays: number[] = []
        for (let round = 0; round < (quick ? 1 : TICKS); round++) {
          arrivals.length = 0
          const at = await tick(11)
          await until(() => arrivals.length >= firing)
          delays.push(...arrivals.map((arrived) => arrived - at))
          say(`tick ${round + 1}: ${Math.round(Math.max(...arrivals) - at)} ms to the last of ${firing} alerts`)
          await tick(9)
          await until(async () => {
            const states = await store.readStates(
              rules.map(({ name }) => name),
              now,
            )
            return ![...states.values()].some((own) => [...own.values()].some(({ holds }) => holds))
          })
        }
        const sorted = delays.sort((a, b) => a - b)
        const p99 = sorted[Math.floor(sorted.length * 0.99)] ?? Number.NaN
        const notes = `${count} rules about ${tokens.length} tokens; ${firing} of them fire at a tick of all tokens.`
        return {
          rows: [
            {
              what: 'commit to POST, median',
              a: { name: 'alerts', value: toMedian(delays), unit: 'ms' },
              rounds: delays.length,
            },
            {
              what: 'commit to POST, 99th percentile',
              a: { name: 'alerts', value: p99, unit: 'ms' },
              rounds: delays.length,
              target: atMost(1_000, ' ms'),
            },
          ],
          notes: [notes],
        }
      } finally {
        await alerts.stop()
        receiver.closeAllConnections()
        receiver.close()
        rmSync(dir, { recursive: true, force: true })
      }
    }),
}

const redisUrl = ({
  options: { host, port },
}: {
  readonly options: { readonly host?: string | undefined; readonly port?: number | undefined }
}) => `redis://${host}:${port}`
