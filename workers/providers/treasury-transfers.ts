import { z } from 'zod'
import type { TreasuryFlowRow } from '../../shared/datasets/treasury-flows.ts'
import { DataError, isAboutProvider, toReason } from '../../shared/errors.ts'
import { groupBy } from '../../shared/group-by.ts'
import { DAY_MS } from '../../shared/intervals.ts'
import { type OperatorLabels, readLabels, toFlowFacts } from '../flows/flow-facts.ts'
import { toFlowRows } from '../flows/flow-rows.ts'
import type { Candidate, Provider } from '../job/define-job.ts'
import { recall } from '../job/state.ts'
import type { TransferReader, TransferReading, TransferSource } from './contracts/transfers.ts'
import type { ChainWallets, FlowDao, FlowRequest, FlowSource } from './contracts/treasury-flows.ts'
import { openNodeTransfers } from './evm/transfers.ts'
import { openExplorerTransfers } from './explorers/transfers.ts'

/** Blocks of all chains are final after this time. */
const FINAL_AFTER_MS = 20 * 60_000

/**
 * Transfers of treasuries from explorers and nodes. Each chain has one source for all kinds of transfers, because swaps
 * are recognized by all legs of a transaction: Etherscan, or Blockscout if that does not serve the chain or fails. Only
 * explorers have all native transfers. A chain with neither is read from its node: the tokens are stored, and the coverage
 * of the DAO has the reason why its transfers are incomplete.
 */
export const treasuryTransfers: Provider<FlowSource, FlowDao> = {
  name: 'transfers',
  cost: 'one call per address and kind of transfer, of the plan of the explorer; nodes as they bill',
  covers: () => true,
  connect(context) {
    const now = context.now ?? Date.now
    const { labelsFile } = context.config.treasuryFlows
    const sources = [
      openExplorerTransfers(context, 'etherscan'),
      openExplorerTransfers(context, 'blockscout'),
      openNodeTransfers(context),
    ]
    const collect = async (request: FlowRequest, spanOf: SpanOf) =>
      readUnits(request, await readLabels(labelsFile), sources, spanOf)
    return {
      fetchNew: async (request) => {
        const to = Math.min(request.slot, now() - FINAL_AFTER_MS)
        return collect(request, ({ dao, chain }) => ({ name: `${dao.id}.${chain}`, from: request.slot - DAY_MS, to }))
      },
      fetchHistory: async ({ range, ...request }) => {
        const to = Math.min(range.to, now() - FINAL_AFTER_MS)
        const part = `${range.from}.${range.to}`
        return collect(request, ({ dao, chain }) => ({ name: `${dao.id}.${chain}.${part}`, from: range.from, to }))
      },
    }
  },
}

/** The wallets of a DAO on a chain, which one source reads. */
interface Unit extends ChainWallets {
  readonly dao: FlowDao
}

/** The time to read, in Unix milliseconds, and the name of the position in the state. */
interface Span {
  readonly name: string
  readonly from: number
  readonly to: number
}

type SpanOf = (unit: Unit) => Span

/** The position of a unit: read without a gap from `since` to `until`, with all native transfers or not. */
const position = z.object({ since: z.int(), until: z.int(), hasNative: z.boolean() })
type Position = z.infer<typeof position>

type Outcome = Position | DataError | 'unfinished'

async function readUnits(
  request: FlowRequest,
  labels: OperatorLabels,
  sources: readonly TransferSource[],
  spanOf: SpanOf,
): Promise<Candidate<TreasuryFlowRow>[]> {
  const rows: TreasuryFlowRow[] = []
  const outcomes = new Map<Unit, Outcome>()
  const readers = new Map(sources.map((source) => [source, source.open()]))
  const units = request.entities.flatMap((dao) => dao.wallets.map((wallets): Unit => ({ dao, ...wallets })))
  for (const [chain, own] of groupBy(units, (unit) => unit.chain)) {
    const serving = toServing(sources, chain)
    const states = await Promise.all(own.map((unit) => recall(request.state, spanOf(unit).name, position)))
    const open: OpenUnit[] = own.flatMap((unit, at) => {
      const { from: first, to } = spanOf(unit)
      const stored = states[at]
      // Once a source has native transfers, those of the time before it are read, too.
      const isOutdated = stored?.hasNative === false && serving[0]?.hasNative === true
      const before = isOutdated ? undefined : stored
      const from = stored?.since ?? first
      if (before !== undefined && before.until >= to) {
        outcomes.set(unit, before)
        return []
      }
      return [{ unit, before, from: before?.until ?? from, to }]
    })
    await readChain(open, serving, {
      request,
      readers,
      onRead: (one, reading, { hasNative }) => {
        for (const row of toRows(one.unit, reading, labels)) rows.push(row)
        const { before, from } = one
        const until = Math.max(reading.until, from)
        const after = { since: before?.since ?? from, until, hasNative }
        request.state.set(spanOf(one.unit).name, JSON.stringify(after))
        outcomes.set(one.unit, reading.isComplete ? after : 'unfinished')
      },
      onFailed: ({ unit }, error) => outcomes.set(unit, error),
      onUnread: ({ unit }) => outcomes.set(unit, 'unfinished'),
    })
  }
  report(request, outcomes)
  return rows
}

/**
 * The sources of a chain, in order. If one has native transfers, those without them are not used: swaps would lack legs.
 */
function toServing(sources: readonly TransferSource[], chain: string): TransferSource[] {
  const serving = sources.filter((source) => source.has(chain))
  const complete = serving.filter(({ hasNative }) => hasNative)
  return complete.length > 0 ? complete : serving
}

interface OpenUnit {
  readonly unit: Unit
  readonly before: Position | undefined
  readonly from: number
  readonly to: number
}

interface ChainContext {
  readonly request: FlowRequest
  readonly readers: ReadonlyMap<TransferSource, TransferReader>
  onRead(one: OpenUnit, reading: TransferReading, source: TransferSource): void
  onFailed(one: OpenUnit, error: DataError): void
  onUnread(one: OpenUnit): void
}

/** Reads units of a chain from its sources. A unit whose source fails is read from the next one. */
async function readChain(
  units: readonly OpenUnit[],
  sources: readonly TransferSource[],
  context: ChainContext,
): Promise<void> {
  let open = [...units]
  const errors = new Map<OpenUnit, DataError>()
  for (const source of sources) {
    const failed: OpenUnit[] = []
    const parts = source.readsTogether
      ? [...groupBy(open, ({ from, to }) => `${from} ${to}`).values()]
      : open.map((one) => [one])
    let end: DataError | undefined
    for (const part of parts) {
      const error = end ?? (await readPart(part, source, context))
      if (error === undefined) continue
      // Without a key, or after the plan is used up, each call of the source fails.
      if (isAboutProvider(error)) end = error
      for (const one of part) {
        failed.push(one)
        if (!errors.has(one)) errors.set(one, error)
      }
    }
    open = failed
  }
  for (const one of open) context.onFailed(one, errors.get(one) ?? toUnserved(one.unit))
}

/** Reads units together. Returns why they cannot be read. */
async function readPart(
  part: readonly OpenUnit[],
  source: TransferSource,
  { request, readers, onRead, onUnread }: ChainContext,
): Promise<DataError | undefined> {
  const [first] = part
  const reader = readers.get(source)
  if (first === undefined || reader === undefined) return undefined
  if (reader.isSpent()) {
    for (const one of part) onUnread(one)
    return undefined
  }
  const { chain, chainId, dao } = first.unit
  try {
    const reading = await reader.read({
      ...{ chain, chainId, from: first.from, to: first.to, signal: request.signal },
      accounts: [...new Set(part.flatMap(({ unit }) => unit.accounts))],
      needsFacts: (contract) => dao.known.assets.get(`${chain}/${contract}`)?.decimals === null,
    })
    for (const one of part) onRead(one, reading, source)
    if (reading.omitted !== undefined) for (const { unit } of part) request.omit(unit.dao, reading.omitted)
    return undefined
  } catch (error) {
    if (!(error instanceof DataError)) throw error
    request.log.warn({ chain, source: source.name, reason: toReason(error) }, 'transfers could not be read')
    return error
  }
}

function toRows({ dao, accounts }: Unit, { transfers, actedIn }: TransferReading, labels: OperatorLabels) {
  const own = new Set(accounts)
  const ofUnit = transfers.filter(({ sender, recipient }) => own.has(sender) || own.has(recipient))
  return toFlowRows(dao, ofUnit, actedIn, toFlowFacts(dao, dao.known, labels))
}

const toUnserved = ({ chain }: Unit) =>
  new DataError(
    'provider_unconfigured',
    `no source of transfers on ${chain}: ETHERSCAN_API_KEY and ETHERSCAN_CHAINS, BLOCKSCOUT_API_KEY and BLOCKSCOUT_CHAINS, or RPC_URLS`,
  )

const toTokensOnly = (chains: readonly string[]) =>
  new DataError(
    'provider_unconfigured',
    `no native transfers of ${chains.join(', ')}: a node has only tokens and payments that Safes log; set ETHERSCAN_API_KEY or BLOCKSCOUT_API_KEY, and their chains`,
  )

/** Reports the outcome of each DAO: of all its chains together. The rows of the chains that were read are stored anyway. */
function report(request: FlowRequest, outcomes: ReadonlyMap<Unit, Outcome>): void {
  let hasMore = false
  for (const [dao, own] of groupBy([...outcomes], ([{ dao }]) => dao)) {
    const found = own.map(([, outcome]) => outcome)
    const failure = found.find((one) => one instanceof DataError)
    const read = own.flatMap(([{ chain }, one]) => (isPosition(one) ? [{ chain, ...one }] : []))
    const tokensOnly = read.filter(({ hasNative }) => !hasNative).map(({ chain }) => chain)
    if (found.includes('unfinished')) {
      request.putOff([dao])
      hasMore = true
    } else if (failure !== undefined) request.refuse(dao, failure)
    else if (tokensOnly.length > 0) request.refuse(dao, toTokensOnly(tokensOnly))
    else
      request.noteRead([dao], {
        from: Math.max(...read.map(({ since }) => since)),
        to: Math.min(...read.map(({ until }) => until)),
      })
  }
  if (hasMore) request.noteMore()
}

const isPosition = (one: Outcome): one is Position => one !== 'unfinished' && !(one instanceof DataError)
