import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { countCases, SEED } from '../support/cases.ts'
import { logAt, timeAt, toGovernorChain } from '../support/governor-chain.ts'
import {
  AUTHOR,
  BRAVO,
  blockOf,
  ENS,
  type GovernorPipeline,
  startGovernors,
  toQuery,
} from '../support/governor-pipeline.ts'
import { createRandom } from '../support/random.ts'
import type { ChainLog } from '../upstream/chain.ts'
import { encodeEvent, encodeOutcome } from '../upstream/governor-logs.ts'
import { nowAt } from '../upstream/small-chain.ts'
import {
  encodeCallExecuted,
  encodeCancelled,
  encodeQueued,
  encodeScheduled,
  encodeTimelockChange,
  encodeTransaction,
  hashOperationBatch,
  type QueuedCall,
  toSalt,
} from '../upstream/timelock-logs.ts'

const TIMELOCK = `0x${'7'.repeat(40)}`
const COMPOUND_TIMELOCK = '0x6d903f6003cca6255d85cca4d3b5e5146dc33925'
const DAY_BLOCKS = 7_200
const DAY_SECONDS = 86_400n
const secondsAt = (n: number) => BigInt(Date.parse(timeAt(n)) / 1000)

const CREATED =
  'event ProposalCreated(uint256 id, address proposer, address[] targets, uint256[] values, string[] signatures, bytes[] calldatas, uint256 start, uint256 end, string description)'
const transfer: QueuedCall = {
  ...{ target: `0x${'c'.repeat(40)}`, value: 5n, signature: '' },
  data: `0xa9059cbb${'1'.padStart(64, '0')}${'2'.padStart(64, '0')}`,
}
const pause: QueuedCall = { target: `0x${'d'.repeat(40)}`, value: 0n, signature: '', data: '0x8456cb59' }
const setDelay: QueuedCall = {
  ...{ target: `0x${'d'.repeat(40)}`, value: 0n, signature: 'setDelay(uint256)' },
  data: `0x${'9'.padStart(64, '0')}`,
}

const created = (id: bigint, calls: readonly QueuedCall[], description: string) =>
  encodeEvent(CREATED, [
    ...[id, AUTHOR, calls.map(({ target }) => target), calls.map(({ value }) => value)],
    ...[calls.map(({ signature }) => signature), calls.map(({ data }) => data)],
    ...[blockOf(20), blockOf(300), description],
  ])

const CALLS = [transfer, pause]
const TEXT = '# Grant\n\nPays \u{1f4b0} once.'
/** The id of its operation, by the version of the governor. */
const ids = {
  old: hashOperationBatch(CALLS, toSalt(TEXT)),
  new: hashOperationBatch(CALLS, toSalt(TEXT, ENS.address)),
}

/** A proposal of OpenZeppelin's governor that is scheduled in its timelock with a delay of two days. */
const queued = (id: `0x${string}`): ChainLog[] => [
  logAt(5, ENS.address, encodeTimelockChange(TIMELOCK)),
  logAt(10, ENS.address, created(7n, CALLS, TEXT)),
  logAt(320, TIMELOCK, encodeScheduled(id, transfer, 2n * DAY_SECONDS), { logIndex: 1 }),
  logAt(320, ENS.address, encodeQueued(7n, secondsAt(320) + 2n * DAY_SECONDS), { logIndex: 2 }),
]

interface Proposal {
  outcome: string | null
  state: string
  queuedAt: string | null
  executableAt: string | null
  executedAt: string | null
  canceledAt: string | null
}

let pipeline: GovernorPipeline
afterEach(() => pipeline?.close())

const proposals = (slug: string, more = '') => pipeline.get<Proposal[]>(`/proposals${toQuery(slug)}${more}`)

describe("proposals in OpenZeppelin's timelock", () => {
  it.each(['old', 'new'] as const)(
    'are canceled with their operation, by the id of the %s version',
    async (version) => {
      const id = ids[version]
      const logs = [...queued(id), logAt(400, TIMELOCK, encodeCancelled(id))]
      pipeline = await startGovernors(60 * DAY_BLOCKS, toGovernorChain(logs))
      expect(await pipeline.collectGovernors()).toMatchObject({ rejected: 0 })
      expect(await proposals('ens')).toMatchObject([
        {
          ...{ outcome: 'canceled', state: 'closed', queuedAt: timeAt(320) },
          ...{ executableAt: null, executedAt: null, canceledAt: timeAt(400) },
        },
      ])
    },
  )

  it('are executed with their operation, although the governor logs nothing', async () => {
    const logs = [...queued(ids.new), logAt(20_000, TIMELOCK, encodeCallExecuted(ids.new, transfer))]
    pipeline = await startGovernors(21_000, toGovernorChain(logs))
    await pipeline.collectGovernors()
    expect(await proposals('ens')).toMatchObject([
      { outcome: 'executed', executedAt: timeAt(20_000), executableAt: timeAt(320 + 2 * DAY_BLOCKS), canceledAt: null },
    ])
    const rows = await pipeline.database.db.rows({
      name: 'executed-tx',
      sql: "SELECT executed_tx FROM dao_proposal_details FINAL WHERE executed_tx != ''",
      schema: z.object({ executed_tx: z.string() }),
    })
    expect(rows).toEqual([{ executed_tx: logs.at(-1)?.transactionHash }])
  })

  it('are queued again, with the new time, if their operation is scheduled again', async () => {
    const logs = [
      ...[...queued(ids.new), logAt(400, TIMELOCK, encodeCancelled(ids.new))],
      logAt(500, TIMELOCK, encodeScheduled(ids.new, transfer, DAY_SECONDS)),
    ]
    pipeline = await startGovernors(600, toGovernorChain(logs))
    await pipeline.collectGovernors()
    expect(await proposals('ens')).toMatchObject([
      { outcome: 'queued', executableAt: timeAt(500 + DAY_BLOCKS), canceledAt: null },
    ])
  })

  it('keep their state after operations of other ids, of other contracts, and before the governor used the timelock', async () => {
    const logs = [
      logAt(3, TIMELOCK, encodeCancelled(ids.new)),
      ...queued(ids.new),
      logAt(400, TIMELOCK, encodeCancelled(hashOperationBatch(CALLS, toSalt(TEXT, AUTHOR)))),
      logAt(401, AUTHOR, encodeCancelled(ids.new)),
    ]
    pipeline = await startGovernors(600, toGovernorChain(logs))
    await pipeline.collectGovernors()
    expect(await proposals('ens')).toMatchObject([{ outcome: 'queued', executableAt: timeAt(320 + 2 * DAY_BLOCKS) }])
  })

  it('change when a later run reads the operation, whose proposal an earlier run read', async () => {
    const logs = queued(ids.new)
    pipeline = await startGovernors(600, toGovernorChain([...logs, logAt(2_000, TIMELOCK, encodeCancelled(ids.new))]))
    await pipeline.collectGovernors()
    expect(await proposals('ens')).toMatchObject([{ outcome: 'queued' }])
    pipeline.clock.now = nowAt(3_000)
    await pipeline.collectGovernors()
    expect(await proposals('ens')).toMatchObject([{ outcome: 'canceled', canceledAt: timeAt(2_000) }])
  })
})

const STEPS = ['scheduled', 'canceled', 'executed'] as const

it(`never shows a canceled operation as queued or executable, in any order of steps and runs (seed ${SEED})`, async () => {
  const random = createRandom(SEED)
  const FIRST_STEP = 320
  const runs = [1_000, 1_400, 2_400]
  const all = Array.from({ length: countCases(25) }, (_, at) => {
    const [text, id] = [`# Grant ${at}`, BigInt(at + 1)]
    const operation = hashOperationBatch(CALLS, toSalt(text, random.chance(0.5) ? ENS.address : undefined))
    const steps = Array.from({ length: 1 + random.below(4) }, () => random.pick(STEPS))
    return { text, id, operation, steps: steps.map((step, number) => ({ step, n: FIRST_STEP + 400 * (number + 1) })) }
  })
  const encode = { scheduled: encodeScheduled, canceled: encodeCancelled, executed: encodeCallExecuted }
  const logs = [
    logAt(5, ENS.address, encodeTimelockChange(TIMELOCK)),
    ...all.flatMap(({ text, id, operation, steps }, at) => [
      logAt(10, ENS.address, created(id, CALLS, text), { logIndex: at }),
      logAt(FIRST_STEP, TIMELOCK, encodeScheduled(operation, transfer, DAY_SECONDS), { logIndex: 2 * at }),
      logAt(FIRST_STEP, ENS.address, encodeQueued(id, secondsAt(FIRST_STEP) + DAY_SECONDS), { logIndex: 2 * at + 1 }),
      ...steps.map(({ step, n }) =>
        logAt(n, TIMELOCK, encode[step](operation, transfer, DAY_SECONDS), { logIndex: at }),
      ),
    ]),
  ]
  pipeline = await startGovernors(runs[0] ?? 0, toGovernorChain(logs))
  for (const run of runs) {
    pipeline.clock.now = nowAt(run)
    await pipeline.collectGovernors()
    const head = run - 1
    const served = await pipeline.get<(Proposal & { title: string })[]>(`/proposals${toQuery('ens')}`)
    expect(served).toHaveLength(all.length)
    for (const { text, steps } of all) {
      const found = served.find(({ title }) => title === text.slice(2))
      const last = steps.findLast(({ n }) => n <= head) ?? { step: 'scheduled', n: FIRST_STEP }
      const isExecutable = last.step === 'scheduled' ? timeAt(last.n + DAY_BLOCKS) : null
      if (last.step === 'canceled')
        expect(found).toMatchObject({ outcome: 'canceled', executableAt: null, canceledAt: timeAt(last.n) })
      else if (last.step === 'scheduled') expect(found).toMatchObject({ outcome: 'queued', executableAt: isExecutable })
      else expect(found).toMatchObject({ outcome: 'executed', executedAt: timeAt(last.n), canceledAt: null })
    }
  }
})

describe("proposals in Compound's timelock", () => {
  const eta = secondsAt(320) + 2n * DAY_SECONDS
  const calls = [setDelay, transfer]
  const logs = [
    logAt(10, BRAVO.address, created(7n, calls, '# Delay')),
    ...calls.map((call, logIndex) =>
      logAt(320, COMPOUND_TIMELOCK, encodeTransaction('QueueTransaction', call, eta), { logIndex }),
    ),
    logAt(320, BRAVO.address, encodeQueued(7n, eta), { logIndex: 5 }),
  ]
  /** 2 days after it was queued, and 14 days later. */
  const EXECUTABLE = 320 + 2 * DAY_BLOCKS
  const EXPIRED = EXECUTABLE + 14 * DAY_BLOCKS

  it('expire 14 days after they could be executed, by the clock alone', async () => {
    pipeline = await startGovernors(EXPIRED - 10, toGovernorChain(logs))
    await pipeline.collectGovernors()
    expect(await proposals('compound')).toMatchObject([{ outcome: 'queued', executableAt: timeAt(EXECUTABLE) }])
    pipeline.clock.now = nowAt(EXPIRED + 1)
    expect(await proposals('compound')).toMatchObject([
      { outcome: 'expired', state: 'closed', executableAt: null, executedAt: null, canceledAt: null },
    ])
    expect(await proposals('compound', '&filter=outcome=expired')).toHaveLength(1)
  })

  it('are canceled if one of their calls is', async () => {
    const canceled = logAt(500, COMPOUND_TIMELOCK, encodeTransaction('CancelTransaction', transfer, eta))
    pipeline = await startGovernors(600, toGovernorChain([...logs, canceled]))
    await pipeline.collectGovernors()
    expect(await proposals('compound')).toMatchObject([{ outcome: 'canceled', canceledAt: timeAt(500) }])
  })

  it('are executed if all of their calls are, and keep their state after equal calls with another time', async () => {
    const executed = (n: number, call: QueuedCall, at = eta) =>
      logAt(n, COMPOUND_TIMELOCK, encodeTransaction('ExecuteTransaction', call, at))
    const first = [...logs, executed(15_000, transfer), executed(15_001, setDelay, eta + 1n)]
    pipeline = await startGovernors(16_000, toGovernorChain([...first, executed(17_000, setDelay)]))
    await pipeline.collectGovernors()
    expect(await proposals('compound')).toMatchObject([{ outcome: 'queued' }])
    pipeline.clock.now = nowAt(18_000)
    await pipeline.collectGovernors()
    expect(await proposals('compound')).toMatchObject([{ outcome: 'executed', executedAt: timeAt(17_000) }])
  })

  it('have the outcome of the governor, not that of the timelock', async () => {
    const canceled = logAt(500, BRAVO.address, encodeOutcome('ProposalCanceled', 7n))
    pipeline = await startGovernors(EXPIRED + 10, toGovernorChain([...logs, canceled]))
    await pipeline.collectGovernors()
    expect(await proposals('compound')).toMatchObject([{ outcome: 'canceled', executableAt: null }])
  })
})
