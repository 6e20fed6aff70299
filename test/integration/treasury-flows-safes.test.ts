import { encodeAbiParameters, encodeEventTopics, parseAbi } from 'viem/utils'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { loadRegistry } from '../../shared/registry/registry.ts'
import treasuryFlowsJob from '../../workers/jobs/treasury-flows.ts'
import { runJob } from '../../workers/run/runner.ts'
import { toPendingReport } from '../support/pending-report.ts'
import { createPipeline } from '../support/pipeline.ts'
import type { ChainLog } from '../upstream/chain.ts'
import { createLoggedChain } from '../upstream/logged-chain.ts'

const HOUR = 3_600_000
const SLOT = Date.parse('2026-05-06T00:00:00Z')
const SECONDS = 12
/** The block of the slot's start. */
const AT_SLOT = 1_000_000
const ETHER = 10n ** 18n

const all = loadRegistry()
const ens = all.daoBySlug.get('ens')
if (ens === undefined) throw new Error('no DAO ens')
const registry = { ...all, daos: [ens] }
const wallets = ens.treasuries.filter(({ role = 'wallet', chain }) => role === 'wallet' && chain === 'ethereum')
const [safe, other] = wallets.map(({ address }) => address.toLowerCase() as `0x${string}`)
if (safe === undefined || other === undefined) throw new Error('ens has fewer than two wallets')
const [payee, module, stranger] = ['1', '2', '3'].map((digit) => `0x${digit.repeat(40)}` as const) as [
  `0x${string}`,
  `0x${string}`,
  `0x${string}`,
]
const ZERO = `0x${'0'.repeat(40)}` as const

/** The events as the contracts of safe-global/safe-smart-account declare them, tag v1.3.0. */
const abi = parseAbi([
  'event SafeReceived(address indexed sender, uint256 value)',
  'event ExecutionSuccess(bytes32 txHash, uint256 payment)',
  'event ExecutionFromModuleSuccess(address indexed module)',
  'event ExecutionFromModuleFailure(address indexed module)',
  'event SafeMultiSigTransaction(address to, uint256 value, bytes data, uint8 operation, uint256 safeTxGas, uint256 baseGas, uint256 gasPrice, address gasToken, address refundReceiver, bytes signatures, bytes additionalInfo)',
  'event SafeModuleTransaction(address module, address to, uint256 value, bytes data, uint8 operation)',
])

interface SafeEvent {
  readonly name: (typeof abi)[number]['name']
  readonly args: readonly unknown[]
  readonly address?: string
}

/** The logs of a transaction in a block before the slot, as a node has them. */
const toLogs = (transaction: number, events: readonly SafeEvent[]): ChainLog[] =>
  events.map(({ name, args, address = safe }, place) => {
    const event = abi.find((one) => one.name === name)
    if (event === undefined) throw new Error(name)
    const inputs = event.inputs.map((input, at) => ({ input, value: args[at] }))
    const isIndexed = ({ input }: (typeof inputs)[number]) => 'indexed' in input && input.indexed === true
    const indexed = Object.fromEntries(inputs.filter(isIndexed).map(({ input, value }) => [input.name, value]))
    const plain = inputs.filter((one) => !isIndexed(one))
    return {
      address,
      topics: encodeEventTopics({ abi: [event], args: indexed } as never) as string[],
      data: encodeAbiParameters(plain.map(({ input }) => input) as never, plain.map(({ value }) => value) as never),
      blockNumber: AT_SLOT - 1_000 + transaction,
      transactionHash: `0x${transaction.toString(16).padStart(64, '0')}`,
      transactionIndex: 0,
      logIndex: place,
    }
  })

const multisig = (to: string, value: bigint): SafeEvent => ({
  name: 'SafeMultiSigTransaction',
  args: [to, value, '0xabcdef', 0, 0n, 0n, 0n, ZERO, ZERO, `0x${'ab'.repeat(65)}`, `0x${'cd'.repeat(96)}`],
})
const byModule = (to: string, value: bigint, operation = 0): SafeEvent => ({
  name: 'SafeModuleTransaction',
  args: [module, to, value, '0xabcdef', operation],
})
const success: SafeEvent = { name: 'ExecutionSuccess', args: [`0x${'9'.repeat(64)}`, 0n] }
const moduleSuccess: SafeEvent = { name: 'ExecutionFromModuleSuccess', args: [module] }
const moduleFailure: SafeEvent = { name: 'ExecutionFromModuleFailure', args: [module] }

const stored = z.object({ row: z.string() })

describe('native payments of Safes from the logs of a node', () => {
  it('are those of owners and of modules, and the coverage names the others', async () => {
    const logs = [
      toLogs(1, [{ name: 'SafeReceived', args: [payee, ETHER] }]),
      toLogs(2, [multisig(payee, 2n * ETHER), success]),
      toLogs(3, [byModule(payee, 3n * ETHER), moduleSuccess]),
      // Of one call, and of a module in a call of the owners.
      toLogs(4, [multisig(payee, 0n), byModule(payee, 4n * ETHER), moduleSuccess, success]),
      // A payment to another wallet of the DAO is in the events of both.
      toLogs(5, [
        byModule(other, 5n * ETHER),
        { name: 'SafeReceived', args: [safe, 5n * ETHER], address: other },
        moduleSuccess,
      ]),
      // These moved nothing.
      toLogs(6, [byModule(payee, 6n * ETHER), moduleFailure]),
      toLogs(7, [byModule(payee, 7n * ETHER, 1), moduleSuccess]),
      toLogs(8, [moduleSuccess]),
      // A stranger has the same events.
      toLogs(9, [
        { ...byModule(safe, 9n * ETHER), address: stranger },
        { ...moduleSuccess, address: stranger },
      ]),
    ].flat()
    const times = new Map([-50_000, 50_000].map((at) => [AT_SLOT + at, SLOT / 1000 + at * SECONDS]))
    const pipeline = await createPipeline({
      ...{ registry, now: SLOT + HOUR, chains: { ethereum: createLoggedChain({ logs, times, pools: [] }) } },
      settings: { ETHERSCAN_CHAINS: 'polygon', BLOCKSCOUT_CHAINS: 'base' },
    })
    try {
      const connection = treasuryFlowsJob.connect(pipeline.context)
      await runJob(treasuryFlowsJob, connection, pipeline.context, { kind: 'slot', slot: SLOT }).catch(toPendingReport)
      const rows = await pipeline.database.db.rows({
        name: 'flows',
        sql: `SELECT concat(toString(kind), ' ', sender, ' ', recipient, ' ', toString(base_units), ' ', toString(occurrence)) AS row
FROM treasury_flows FINAL WHERE dao = {dao: UInt64} AND contract_address = '' ORDER BY transaction_hash`,
        params: { dao: ens.key },
        schema: stored,
      })
      expect(rows.map(({ row }) => row)).toEqual([
        `income ${payee} ${safe} ${ETHER} 0`,
        `spending ${safe} ${payee} ${2n * ETHER} 0`,
        `spending ${safe} ${payee} ${3n * ETHER} 0`,
        `spending ${safe} ${payee} ${4n * ETHER} 0`,
        `internal ${safe} ${other} ${5n * ETHER} 0`,
      ])
      const reasons = await pipeline.database.db.rows({
        name: 'reasons',
        sql: "SELECT DISTINCT reason AS row FROM coverage_notes FINAL WHERE dataset = 'treasury-flows' AND reason != ''",
        schema: stored,
      })
      expect(JSON.stringify(reasons)).toContain(
        'no native transfers of ethereum: a node has only tokens and payments that Safes log',
      )
    } finally {
      await pipeline.close()
    }
  })
})
