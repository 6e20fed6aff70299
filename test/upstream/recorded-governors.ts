import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { parse } from 'csv-parse/sync'
import type { ChainLog } from './chain.ts'
import { encodeEvent } from './governor-logs.ts'
import { hashOf } from './small-chain.ts'

const FOLDER = 'governance-dao-node'
export const UNISWAP = '0x408ed6354d4973f66138c91495f2f2fcbd8724c3'
export const OPTIMISM = '0xcdf27f107725988f2261ce2256bdfcde8b382b10'

type Row = Readonly<Record<string, string>>

export const readRows = (dataDir: string, name: string): Row[] =>
  parse(gunzipSync(readFileSync(join(dataDir, FOLDER, `${name}.csv.gz`))), { columns: true })

function toLog(address: string, row: Row, declaration: string, values: readonly unknown[]): ChainLog {
  const [blockNumber, logIndex] = [Number(row.block_number), Number(row.log_index)]
  return {
    ...{ address, blockNumber, logIndex, transactionIndex: Number(row.transaction_index) },
    ...encodeEvent(declaration, values),
    transactionHash: hashOf(blockNumber * 100_000 + logIndex),
  }
}

const toList = (json = '[]') => JSON.parse(json.replaceAll(/(?<=[[,])\d+(?=[\],])/g, '"$&"')) as string[]
/** Calldatas are written without quotes and without 0x. */
const toBytes = (text = '[]') =>
  text
    .slice(1, -1)
    .split(',')
    .map((data) => `0x${data.trim()}`)

const CALLS = 'address[] targets, uint256[] values, string[] signatures, bytes[] calldatas'
const MODULE = 'address votingModule, bytes proposalData'
const PERIOD = 'uint256 start, uint256 end, string description'

const callsOf = (row: Row) => [
  toList(row.targets),
  toList(row.values).map(BigInt),
  toList(row.signatures),
  toBytes(row.calldatas),
]
const moduleOf = (row: Row) => [row.voting_module, `0x${row.proposal_data}`]
const periodOf = (row: Row) => [BigInt(row.start_block ?? ''), BigInt(row.end_block ?? ''), row.description]

const created = (what: string, more = '') =>
  `event ProposalCreated(uint256 id, address proposer, ${what}, ${PERIOD}${more})`

/** All proposals of Uniswap's governor up to number 83, and the votes on that one. */
export function readUniswapLogs(dataDir: string): ChainLog[] {
  const proposals = readRows(dataDir, 'uniswap_ProposalCreated').map((row) =>
    toLog(UNISWAP, row, created(CALLS), [BigInt(row.id ?? ''), row.proposer, ...callsOf(row), ...periodOf(row)]),
  )
  const declaration = 'event VoteCast(address indexed voter, uint256 id, uint8 support, uint256 weight, string reason)'
  const votes = readRows(dataDir, 'uniswap_83_VoteCast').map((row) => {
    const { voter, proposal_id: id = '', support, votes: weight = '', reason } = row
    return toLog(UNISWAP, row, declaration, [voter, BigInt(id), Number(support), BigInt(weight), reason])
  })
  return [...proposals, ...votes]
}

export const OP_TOKEN = '0x4200000000000000000000000000000000000042'

/** 5,000 changes of the power of delegates of Optimism's token, and the times of blocks around them. */
export function readOptimismPowers(dataDir: string) {
  const declaration =
    'event DelegateVotesChanged(address indexed delegate, uint256 previousBalance, uint256 newBalance)'
  const logs = readRows(dataDir, 'optimism_DelegateVotesChanged_first5000').map((row) => {
    const { delegate, previous_balance: before = '', new_balance: after = '' } = row
    return toLog(OP_TOKEN, row, declaration, [delegate, BigInt(before), BigInt(after)])
  })
  const blocks = readRows(dataDir, 'optimism_blocks')
  const times = new Map(blocks.map((row) => [Number(row.block_number), Number(row.timestamp)]))
  return { logs, times }
}

/** All proposals of Optimism's governor up to 25 April 2025, in its four event forms. */
export function readOptimismLogs(dataDir: string): ChainLog[] {
  const read = (name: string, what: string, toValues: (row: Row) => unknown[], hasType: boolean) =>
    readRows(dataDir, name).map((row) => {
      const type = hasType ? [Number(row.proposal_type)] : []
      const values = [BigInt(row.proposal_id ?? ''), row.proposer, ...toValues(row), ...periodOf(row), ...type]
      return toLog(OPTIMISM, row, created(what, hasType ? ', uint8 proposalType' : ''), values)
    })
  return [
    ...read('optimism_ProposalCreated', CALLS, callsOf, false),
    ...read('optimism_ProposalCreated_type', CALLS, callsOf, true),
    ...read('optimism_ProposalCreated_module', MODULE, moduleOf, false),
    ...read('optimism_ProposalCreated_module_type', MODULE, moduleOf, true),
  ]
}
