import { keccak256 } from 'viem/utils'
import { expect, it } from 'vitest'
import { familyOf } from '../../workers/providers/evm/governors/families.ts'
import { toCallKeys, toOperationIds } from '../../workers/providers/evm/governors/operations.ts'
import { timelockDecoder } from '../../workers/providers/evm/governors/timelock-events.ts'
import { countCases, SEED } from '../support/cases.ts'
import { createDescription, createHostileCall, encodeHostileProposal } from '../support/hostile-governors.ts'
import { createRandom } from '../support/random.ts'
import {
  encodeCallExecuted,
  encodeCancelled,
  encodeScheduled,
  encodeTimelockChange,
  encodeTransaction,
  hashOperationBatch,
  toSalt,
} from '../upstream/timelock-logs.ts'

const GOVERNOR = `0x${'1'.repeat(40)}`
const ID = keccak256('0x01')
const call = { target: `0x${'c'.repeat(40)}`, value: 5n, signature: 'setDelay(uint256)', data: '0x01ff' } as const
const toLog = (event: ReturnType<typeof encodeCancelled>) => ({
  ...{ ...event, address: GOVERNOR, blockNumber: 1, transactionHash: ID, logIndex: 0 },
  ...{ blockTimestamp: undefined, removed: false },
})
const decode = (event: ReturnType<typeof encodeCancelled>) => timelockDecoder.decode(toLog(event))

it("decodes the events of OpenZeppelin's timelock", () => {
  expect(decode(encodeScheduled(ID, call, 172_800n))).toEqual({ step: 'scheduled', operation: ID, delay: 172_800n })
  expect(decode(encodeCallExecuted(ID, call))).toEqual({ step: 'executed', operation: ID })
  expect(decode(encodeCancelled(ID))).toEqual({ step: 'canceled', operation: ID })
  const cut = toLog({ ...encodeCancelled(ID), topics: encodeCancelled(ID).topics.slice(0, 1) })
  expect([timelockDecoder.decode(cut), timelockDecoder.faultOf(cut)]).toEqual([
    undefined,
    'Cancelled has 1 topics, known versions have 2',
  ])
})

it("gives a call of Compound's timelock the key of the proposal's call", () => {
  const [operation] = toCallKeys([{ ...call, calldata: call.data }])
  const steps = {
    QueueTransaction: 'scheduled',
    ExecuteTransaction: 'executed',
    CancelTransaction: 'canceled',
  } as const
  for (const [kind, step] of Object.entries(steps))
    expect(decode(encodeTransaction(kind as keyof typeof steps, call, 1_700_000_000n))).toEqual({
      ...{ step, operation, eta: 1_700_000_000n },
    })
  const other = decode(encodeTransaction('QueueTransaction', { ...call, value: 6n }, 1_700_000_000n))
  expect(other?.operation).not.toBe(operation)
})

it('reads the timelock that a governor names', () => {
  for (const family of ['openzeppelin', 'agora'] as const)
    expect(familyOf({ family }).decode(encodeTimelockChange(`0x${'a'.repeat(40)}`))).toEqual({
      ...{ kind: 'timelock', address: `0x${'a'.repeat(40)}` },
    })
})

it(`computes the ids of the timelock for any bytes of calls and descriptions (seed ${SEED})`, () => {
  const random = createRandom(SEED)
  for (let n = 0; n < countCases(100); n += 1) {
    const calls = Array.from({ length: 1 + random.below(4) }, () => createHostileCall(random))
    const description = createDescription(random)
    const log = encodeHostileProposal('openzeppelin', 7n, { description, calls })
    const event = familyOf({ family: 'openzeppelin' }).decode(log)
    if (event?.kind !== 'created') throw new Error('no proposal')
    const executed = calls.map((one) => ({
      ...{ target: `0x${'c'.repeat(40)}`, value: 0n, signature: '', data: one.executed },
    }))
    expect(toOperationIds(GOVERNOR, event)).toEqual([
      hashOperationBatch(executed, toSalt(description)),
      hashOperationBatch(executed, toSalt(description, GOVERNOR)),
    ])
    expect(toOperationIds(GOVERNOR, { ...event, actions: [] })).toEqual([])
  }
})
