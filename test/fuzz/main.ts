import { readCommandLine } from '../../shared/command-line.ts'
import { DataError } from '../../shared/errors.ts'
import { runProgram } from '../../shared/process.ts'
import { createProgress } from '../../shared/progress-bar.ts'
import { runFuzz } from './run.ts'

const HELP = `npm run fuzz -- [--url http://127.0.0.1:3000] [--requests 100000] [--seed 1] [--at-once 8]
  [--against http://127.0.0.1:3001] [--leaving 0.5]
Sends generated requests over all routes to a running API and checks every answer. With
--against, another API over the same data, such as one with API_CACHE_MB=0 and the same PUBLIC_URL, has to answer the same bytes.
With --leaving that share of the clients leaves at any moment before it has its answer.
Exits with 1 when an answer is not as it may be.`

async function main(): Promise<void> {
  const { values } = readCommandLine({
    options: {
      url: { type: 'string', default: 'http://127.0.0.1:3000' },
      requests: { type: 'string', default: '100000' },
      seed: { type: 'string', default: '1' },
      'at-once': { type: 'string', default: '8' },
      against: { type: 'string' },
      leaving: { type: 'string', default: '0' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(HELP)
  const requests = toNumber('requests', values.requests, 0, 1e9)
  const options = {
    url: values.url,
    ...(values.against === undefined ? {} : { against: values.against }),
    requests,
    seed: toNumber('seed', values.seed, 0, 2 ** 32 - 1),
    atOnce: toNumber('at-once', values['at-once'], 1, 1_000),
    leaving: toNumber('leaving', values.leaving, 0, 1),
    now: Date.now(),
  }
  const progress = createProgress('fuzz', requests, process.stdout, 'requests')
  const { statuses, faults, left } = await runFuzz({ ...options, onProgress: progress.set })
  const counts = [...statuses].sort(([a], [b]) => a - b).map(([status, count]) => `${status}: ${count}`)
  const leavers = left === 0 ? '' : `; ${left} clients left`
  progress.stop(`seed ${values.seed}, answers by status: ${counts.join(', ')}${leavers}`)
  for (const { url, fault } of faults) console.log(`${url}\n  ${fault}`)
  console.log(faults.length === 0 ? 'every answer is as it may be' : `${faults.length} answers are not as they may be`)
  process.exitCode = faults.length === 0 ? 0 : 1
}

/** @throws DataError `payload` for what is no number from the least to the most. */
function toNumber(option: string, given: string, least: number, most: number): number {
  const number = given.trim() === '' ? Number.NaN : Number(given)
  if (!(number >= least && number <= most))
    throw new DataError('payload', `--${option} ${given}: not a number from ${least} to ${most}`)
  return number
}

runProgram(main)
