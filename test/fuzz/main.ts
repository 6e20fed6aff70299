import { readCommandLine } from '../../shared/command-line.ts'
import { DataError } from '../../shared/errors.ts'
import { runProgram } from '../../shared/process.ts'
import { createProgress } from '../../shared/progress-bar.ts'
import { MEMORY_ATTACKS, runHostile, WORK_ATTACKS } from './hostile.ts'
import { runFuzz } from './run.ts'

const HELP = `npm run fuzz -- [--url http://127.0.0.1:3000] [--requests 100000] [--seed 1] [--at-once 8]
  [--against http://127.0.0.1:3001] [--leaving 0.5] [--hostile]
Sends generated requests over all routes to a running API and checks every answer.
With --against, another API over the same data must answer with the same bytes: for example one with API_CACHE_MB=0 and the
same PUBLIC_URL.
With --leaving, this share of the clients disconnects at a random time before its answer is complete.
With --hostile, clients of 127.0.0.1 send requests that fill memory or take time, while a client of 127.0.0.2 sends --requests
requests (at most 500) for a cached answer beside each attack.
Exits with 1 if an answer is wrong.`

/** Per attack. */
const MAX_PARALLEL_REQUESTS = 500

async function main(): Promise<void> {
  const { values } = readCommandLine({
    options: {
      url: { type: 'string', default: 'http://127.0.0.1:3000' },
      requests: { type: 'string', default: '100000' },
      seed: { type: 'string', default: '1' },
      'at-once': { type: 'string', default: '8' },
      against: { type: 'string' },
      hostile: { type: 'boolean', default: false },
      leaving: { type: 'string', default: '0' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(HELP)
  const requests = toNumber('requests', values.requests, 0, 1e9)
  if (values.hostile) return runAttacks(values.url, requests)
  const options = {
    url: values.url,
    ...(values.against === undefined ? {} : { against: values.against }),
    requests,
    seed: toNumber('seed', values.seed, 0, 2 ** 32 - 1),
    concurrency: toNumber('at-once', values['at-once'], 1, 1_000),
    disconnecting: toNumber('leaving', values.leaving, 0, 1),
    now: Date.now(),
  }
  const progress = createProgress('fuzz', requests, process.stdout, 'requests')
  const { statuses, faults, remaining } = await runFuzz({ ...options, onProgress: progress.set })
  const counts = [...statuses].sort(([a], [b]) => a - b).map(([status, count]) => `${status}: ${count}`)
  const leavers = remaining === 0 ? '' : `; ${remaining} clients left`
  progress.stop(`seed ${values.seed}, answers by status: ${counts.join(', ')}${leavers}`)
  for (const { url, fault } of faults) console.log(`${url}\n  ${fault}`)
  console.log(faults.length === 0 ? 'every answer is as it may be' : `${faults.length} answers are not as they may be`)
  process.exitCode = faults.length === 0 ? 0 : 1
}

/** Prints the results of a cached response during each attack. */
async function runAttacks(url: string, requests: number): Promise<void> {
  const attacks = [...MEMORY_ATTACKS, ...WORK_ATTACKS]
  const results = await runHostile({ url, attacks, requests: Math.min(requests, MAX_PARALLEL_REQUESTS) })
  for (const { name, failures, p50, p95, requests: count } of results)
    console.log(`beside ${name}: ${count} cached answers, ${failures} failed, p50 ${p50} ms, p95 ${p95} ms`)
  process.exitCode = results.some(({ failures }) => failures > 0) ? 1 : 0
}

/** @throws DataError `payload` if the value is not a number in the range. */
function toNumber(option: string, input: string, least: number, most: number): number {
  const number = input.trim() === '' ? Number.NaN : Number(input)
  if (!(number >= least && number <= most))
    throw new DataError('payload', `--${option} ${input}: not a number from ${least} to ${most}`)
  return number
}

runProgram(main)
