import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { FLOW_KINDS, MOST_LABEL } from '../../shared/datasets/treasury-flows.ts'
import { DataError, toReason } from '../../shared/errors.ts'
import { toMs } from '../../shared/intervals.ts'
import type { Dao } from '../../shared/registry/entities.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { Counterparty, FlowFacts, KnownAsset } from './classify.ts'
import { KNOWN_CONTRACTS } from './known-contracts.ts'
import { COIN_DECIMALS, WRAPPED_COINS } from './wrapped-coins.ts'

/** Addresses of the registry that transfers may involve, by `<chain>/<address>`. */
export interface KnownAddresses {
  readonly labels: ReadonlyMap<string, Counterparty>
  /** Tokens of the registry, wrapped coins, and native coins under an empty address. */
  readonly assets: ReadonlyMap<string, KnownAsset>
}

const toPlace = (chain: string, address: string) => `${chain}/${address}`

/** Collects the labels and assets of the registry and of the known contracts. The first label of an address wins. */
export function toKnownAddresses({ tokens, chains, daos }: Registry): KnownAddresses {
  const labels = new Map<string, Counterparty>()
  const add = (chain: string, address: string, one: Counterparty) => {
    const place = toPlace(chain, address)
    if (!labels.has(place)) labels.set(place, one)
  }
  for (const { chain, address, label, kind } of KNOWN_CONTRACTS) add(chain, address, { label, kind })
  for (const { chain, contractAddress, symbol } of tokens) add(chain, contractAddress, { label: `${symbol} token` })
  for (const { name, treasuries, governors } of daos) {
    for (const { chain, address, role = 'wallet' } of treasuries)
      add(chain, address, { label: `${ROLE_LABELS[role]} of ${name}` })
    for (const { chain, address, timelocks = [] } of governors) {
      add(chain, address, { label: `Governor of ${name}` })
      for (const timelock of timelocks) add(chain, timelock.address, { label: `Timelock of ${name}` })
    }
  }
  const assets = new Map<string, KnownAsset>()
  for (const [chain, { coin, symbol, address }] of Object.entries(WRAPPED_COINS)) {
    assets.set(toPlace(chain, ''), { symbol: coin, decimals: COIN_DECIMALS })
    assets.set(toPlace(chain, address), { symbol, decimals: COIN_DECIMALS })
  }
  for (const { slug, stablecoins } of chains)
    for (const { symbol, address } of stablecoins) assets.set(toPlace(slug, address), { symbol, decimals: null })
  for (const { chain, contractAddress, symbol, decimals } of tokens)
    assets.set(toPlace(chain, contractAddress), { symbol, decimals })
  return { labels, assets }
}

const ROLE_LABELS = { wallet: 'Treasury', revenue: 'Revenue', payee: 'Payee' } as const

const text = z.string().trim().min(1).max(MOST_LABEL)
const labelsFile = z.array(
  z.strictObject({
    address: z
      .string()
      .regex(/^0x[0-9a-fA-F]{40}$/, 'must be an address')
      .transform((address) => address.toLowerCase()),
    /** Slug of the chain; all chains if absent. */
    chain: z.string().min(1).optional(),
    label: text,
    class: z.enum(FLOW_KINDS).optional(),
    category: text.optional(),
  }),
)

/** The operator's labels, by `<chain>/<address>` and by `/<address>` for all chains. */
export type OperatorLabels = ReadonlyMap<string, Counterparty>

/**
 * Reads the operator's file of counterparties.
 * @throws DataError `config` if the file cannot be read, or is not a list of labels
 */
export async function readLabels(file: string | undefined): Promise<OperatorLabels> {
  if (file === undefined) return new Map()
  const entries = labelsFile.safeParse(await readJson(file))
  if (!entries.success) {
    const [issue] = entries.error.issues
    throw toLabelsError(file, `${issue?.path.join('.') || 'the file'}: ${issue?.message}`)
  }
  return new Map(
    entries.data.map(({ chain = '', address, label, class: kind, category }) => [
      toPlace(chain, address),
      { label, kind, category, isOperators: true },
    ]),
  )
}

async function readJson(file: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(file, 'utf8'))
  } catch (error) {
    throw toLabelsError(file, toReason(error))
  }
}

const toLabelsError = (file: string, reason: string) =>
  new DataError('config', `TREASURY_FLOW_LABELS_FILE: ${file}: ${reason}`)

/** The facts about a DAO's transfers. */
export function toFlowFacts(
  { treasuries }: Pick<Dao, 'treasuries'>,
  { labels, assets }: KnownAddresses,
  operator: OperatorLabels,
): FlowFacts {
  const wallets = new Map(
    treasuries
      .filter(({ role = 'wallet' }) => role === 'wallet')
      .map(({ chain, address, since }) => [toPlace(chain, address), since === undefined ? 0 : toMs(since) / 1000]),
  )
  const findOperator = (chain: string, address: string) =>
    operator.get(toPlace(chain, address)) ?? operator.get(toPlace('', address))
  return {
    isOwn: (chain, address, time) => (wallets.get(toPlace(chain, address)) ?? Number.POSITIVE_INFINITY) <= time,
    find: (chain, address) => findOperator(chain, address) ?? labels.get(toPlace(chain, address)),
    findAsset: (chain, contract) => assets.get(toPlace(chain, contract)),
    isListed: (chain, contract) =>
      contract === '' ||
      assets.has(toPlace(chain, contract)) ||
      findOperator(chain, contract) !== undefined ||
      isKnown(labels, toPlace(chain, contract)),
    isWrapper: (chain, address) => WRAPPED_COINS[chain]?.address === address,
  }
}

/** Whether a contract is one of the known contracts, such as stETH. */
const isKnown = (labels: KnownAddresses['labels'], place: string) => labels.get(place)?.kind !== undefined
