import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

const HELP = `Usage: npm run test:long -- [--minutes N] [--seed N]

Runs the tests of big histories, long outages, 10,000 orders of readings and rare set-ups once, the everyday tests with 20 times as many random cases,
then the fault storms with one seed after the other, until the minutes are over. Prints each seed with its outcome. Run it
before a release.

  --minutes N   time limit of the whole run (default 60)
  --seed N      the first seed (default: derived from the clock); the next are N + 1, N + 2, ...
  --help        this text

To repeat random cases: TEST_SEED=N TEST_CASES=20 npx vitest run <file>
To repeat a storm: FAULTS_SEED=N FAULTS_SLOTS=48 STORM_SLOTS=32 npx vitest run --project faults <file>`

const ROOT = join(import.meta.dirname, '../..')
const VITEST = join(ROOT, 'node_modules/vitest/vitest.mjs')
const STORMS = [
  ...['ledger-storm', 'processes-killed', 'clients-disconnect', 'clients-disconnect-midway'],
  ...['alert-storm', 'alert-processes-killed'],
]
const LONG_STORMS = { FAULTS_SLOTS: '48', STORM_SLOTS: '32', ALERT_FAULTS: '300' }

type Outcome = 'passed' | 'failed' | 'stopped at the time limit'

function readInteger(name: string, text: string | undefined, fallback: number): number {
  const value = text === undefined ? fallback : Number(text)
  if (!Number.isSafeInteger(value) || value < 1)
    throw new Error(`--${name}: expected a whole number from 1, got ${text}`)
  return value
}

/** Runs Vitest, and interrupts it at `endsAt` (Unix milliseconds) so that its stores stop in order. */
async function runVitest(args: readonly string[], env: Record<string, string>, endsAt: number): Promise<Outcome> {
  const child = spawn(process.execPath, [VITEST, 'run', ...args], {
    cwd: ROOT,
    env: { ...process.env, ...env },
    stdio: 'inherit',
  })
  let isStopped = false
  const timer = setTimeout(() => {
    isStopped = true
    child.kill('SIGINT')
  }, endsAt - Date.now())
  const [code] = await once(child, 'exit')
  clearTimeout(timer)
  if (code === 0) return 'passed'
  return isStopped ? 'stopped at the time limit' : 'failed'
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { minutes: { type: 'string' }, seed: { type: 'string' }, help: { type: 'boolean' } },
  })
  if (values.help) return console.log(HELP)
  const minutes = readInteger('minutes', values.minutes, 60)
  const first = readInteger('seed', values.seed, Math.floor(Date.now() / 1000))
  const endsAt = Date.now() + minutes * 60_000
  const outcomes: string[] = []
  const report = (name: string, outcome: Outcome, since: number) => {
    const line = `${name}: ${outcome} after ${Math.round((Date.now() - since) / 1000)} s`
    outcomes.push(line)
    console.log(line)
    if (outcome === 'failed') process.exitCode = 1
  }
  let since = Date.now()
  const cases = { TEST_CASES: process.env.TEST_CASES ?? '20', TEST_SEED: process.env.TEST_SEED ?? String(first) }
  report('histories and outages', await runVitest(['--project', 'long'], cases, endsAt), since)
  since = Date.now()
  report('rare set-ups', await runVitest(['--project', 'occasional', '--maxWorkers=4'], {}, endsAt), since)
  since = Date.now()
  const everyday = ['unit', 'integration', 'isolated'].flatMap((name) => ['--project', name])
  report(`random cases, seed ${cases.TEST_SEED}`, await runVitest(everyday, cases, endsAt), since)
  const files = STORMS.map((name) => `test/faults/${name}.test.ts`)
  for (let seed = first; Date.now() < endsAt; seed += 1) {
    since = Date.now()
    const env = { ...LONG_STORMS, FAULTS_SEED: String(seed) }
    report(`seed ${seed}`, await runVitest(['--project', 'faults', ...files], env, endsAt), since)
  }
  console.log(`\n${outcomes.join('\n')}`)
}

await main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
})
