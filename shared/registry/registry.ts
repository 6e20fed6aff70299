import { DataError } from '../errors.ts'
import { toId, toKey } from '../ids.ts'
import { inTurns, mapInSteps, runToEnd, type Steps } from '../turns.ts'
import type { Category, Chain, Dao, Ended, Token } from './entities.ts'
import { type BasketIndex, toIndex } from './index-records.ts'
import { checkReferences, toStoredAddress } from './references.ts'
import type { DaoRecord, TokenRecord } from './schema.ts'
import { type RegistryFiles, type RegistrySource, readFiles, SHIPPED } from './source.ts'

export interface Registry {
  categories: readonly Category[]
  chains: readonly Chain[]
  tokens: readonly Token[]
  daos: readonly Dao[]
  index: BasketIndex
  tokenById: ReadonlyMap<string, Token>
  tokenByKey: ReadonlyMap<number, Token>
  daoById: ReadonlyMap<string, Dao>
  daoBySlug: ReadonlyMap<string, Dao>
  chainBySlug: ReadonlyMap<string, Chain>
  categoryBySlug: ReadonlyMap<string, Category>
  /** Identifies this version of the registry. */
  version: string
  /** Activation time, in Unix milliseconds. */
  changedAt: number
}

/** The registry's records have mistakes: all of them, each naming file, record and field. */
export class RegistryError extends DataError {
  readonly mistakes: readonly string[]

  constructor(mistakes: readonly string[]) {
    super(
      'registry',
      `The registry has ${mistakes.length} mistake(s):\n${mistakes.map((mistake) => `  ${mistake}`).join('\n')}`,
    )
    this.name = 'RegistryError'
    this.mistakes = mistakes
  }
}

/**
 * Loads the registry from categories.json, chains.json, tokens.json, daos.json and index.json of `dir`, by default the
 * shipped ones.
 * @throws RegistryError as `toRegistry`
 */
export const loadRegistry = (dir: string = SHIPPED): Registry => runToEnd(makeRegistry(readFiles(dir)))

/**
 * Checks records against each other and computes the ids (docs/contract.md, section 3). Keeps the order of records.
 * Works in steps and yields to the event loop, because 100,000 records take a second.
 * @throws RegistryError that lists every mistake of all lists.
 */
export const toRegistry = (source: RegistrySource): Promise<Registry> => inTurns(makeRegistry(source))

function* makeRegistry(source: RegistrySource): Steps<Registry> {
  const { files, part, version, changedAt } = source
  const mistakes = [...source.mistakes, ...(yield* checkReferences(files))]
  const records = yield* toRecords(files)
  // References of the index can be checked only against valid records.
  const index = source.index === null || mistakes.length > 0 ? null : toIndex(source.index, records, mistakes)
  if (mistakes.length > 0 || index === null) throw new RegistryError(mistakes)
  const registry = { ...records, index, version, changedAt }
  return part === 'whole' ? registry : withoutDaos(registry)
}

/** Reading a DAO throws. An empty list would mean that there is no DAO to collect. */
function withoutDaos(registry: Registry): Registry {
  const get = () => {
    throw new DataError(
      'registry',
      'the DAOs of the registry were not read, because no dataset of this process declares needsDaos',
    )
  }
  const missing = { get, enumerable: false }
  return Object.defineProperties({ ...registry }, { daos: missing, daoById: missing, daoBySlug: missing })
}

function* toRecords(files: RegistryFiles): Steps<Omit<Registry, 'index' | 'version' | 'changedAt'>> {
  const categories = files.categories.records.map(({ record }) => ({ id: toId('category', record.slug), ...record }))
  const chains = files.chains.records.map(({ record }): Chain => {
    const stablecoins = record.stablecoins.map(({ symbol, address }) => {
      return { symbol, address: toStoredAddress(address, record.evm) }
    })
    return { id: toId('chain', record.slug), ...record, stablecoins }
  })
  const chainBySlug = toMap(chains, (chain) => chain.slug)
  const tokens = withBeginnings(yield* mapInSteps(files.tokens.records, ({ record }) => toToken(record, chainBySlug)))
  const primaryIds = toPrimaryIds(files, tokens)
  yield
  const tokenById = toMap(tokens, (token) => token.id)
  yield
  const daos = yield* mapInSteps(files.daos.records, ({ record }) => {
    const token = tokenById.get(primaryIds.get(record.slug) ?? '')
    return toDao(record, chainBySlug, token)
  })
  const tokenByKey = toMap(tokens, (token) => token.key)
  yield
  const daoById = toMap(daos, (dao) => dao.id)
  yield
  const daoBySlug = toMap(daos, (dao) => dao.slug)
  const categoryBySlug = toMap(categories, (category) => category.slug)
  yield
  return { categories, chains, tokens, daos, tokenById, tokenByKey, daoById, daoBySlug, chainBySlug, categoryBySlug }
}

/** The ids of the tokens that stand for DAOs, by DAO slug. */
function toPrimaryIds(files: RegistryFiles, tokens: readonly Token[]): ReadonlyMap<string, string> {
  const ids = new Map<string, string>()
  for (const [index, { record }] of files.tokens.records.entries()) {
    const token = tokens[index]
    if (token && (record.primary || !ids.has(record.dao))) ids.set(record.dao, token.id)
  }
  return ids
}

function toDao(record: DaoRecord, chainBySlug: ReadonlyMap<string, Chain>, token: Token | undefined): Dao {
  const id = toId('dao', record.slug)
  const treasuries = record.treasuries.map((one) => ({
    ...one,
    address: toStoredAddress(one.address, isEvm(chainBySlug, one.chain)),
  }))
  const governors = record.governors.map(({ votesOn, timelocks, ...one }) => {
    const own = timelocks?.map(({ address, ...more }) => ({ address: address.toLowerCase(), ...more }))
    const contract = { ...toContract(one, chainBySlug, token), ...(own === undefined ? {} : { timelocks: own }) }
    return { ...contract, proposalSpace: votesOn === undefined ? contract.space : toSpace(votesOn, chainBySlug) }
  })
  const votingToken = record.votingToken && toContract(record.votingToken, chainBySlug, token)
  return {
    id,
    key: toKey(id),
    ...record,
    treasuries,
    governors,
    votingToken,
    token: token?.id ?? null,
    ...toUntil(record.ended),
  }
}

/** By default the voting token has the decimals of the DAO's token; a record may override them. */
function toContract<Contract extends { chain: string; address: string; decimals?: number | undefined }>(
  record: Contract,
  chainBySlug: ReadonlyMap<string, Chain>,
  token: Token | undefined,
) {
  const address = record.address.toLowerCase()
  const space = toSpace(`${record.chain}/${address}`, chainBySlug)
  return { ...record, address, space, decimals: record.decimals ?? token?.decimals ?? USUAL_DECIMALS }
}

/** The CAIP-10 account id of a contract on an EVM chain, named as `<chain>/<address>`. */
function toSpace(named: string, chainBySlug: ReadonlyMap<string, Chain>): string {
  const [chain = '', address = ''] = named.split('/')
  return `eip155:${chainBySlug.get(chain)?.chainId}:${address.toLowerCase()}`
}

const USUAL_DECIMALS = 18

function toToken({ primary: _, ...record }: TokenRecord, chainBySlug: ReadonlyMap<string, Chain>): Token {
  const contractAddress = toStoredAddress(record.contractAddress, isEvm(chainBySlug, record.chain))
  const id = toId('token', record.chain, contractAddress)
  const hasMarketDataId = record.cmcId !== null || record.coingeckoId !== null
  const livePrice = record.livePrice ?? (record.live && hasMarketDataId)
  const ended = record.ended && { ...record.ended, successor: toSuccessor(record.ended.successor, chainBySlug) }
  return { id, key: toKey(id), ...record, ended, contractAddress, livePrice, ...toUntil(ended) }
}

/** The id of the token that a record names as `<chain>/<address>`. */
function toSuccessor(named: string | undefined, chainBySlug: ReadonlyMap<string, Chain>): string | null {
  if (named === undefined) return null
  const [chain = '', address = ''] = named.split('/')
  return toId('token', chain, toStoredAddress(address, isEvm(chainBySlug, chain)))
}

const toUntil = (ended: Ended | null) => (ended === null ? {} : { until: Date.parse(ended.at) })

/**
 * Sets the start of a successor within a DAO to the end of its predecessor, because both represent the same supply. A
 * token of another DAO had its own supply before and counts on those days too.
 */
function withBeginnings(tokens: readonly Token[]): Token[] {
  const ends = new Map<string, number>()
  const daoOf = new Map(tokens.map(({ id, dao }) => [id, dao]))
  for (const { ended, dao, until = 0 } of tokens) {
    if (ended?.successor && daoOf.get(ended.successor) === dao)
      ends.set(ended.successor, Math.max(until, ends.get(ended.successor) ?? 0))
  }
  return tokens.map((token) => {
    const since = ends.get(token.id)
    return since === undefined ? token : { ...token, since }
  })
}

function isEvm(chainBySlug: ReadonlyMap<string, Chain>, slug: string): boolean {
  return chainBySlug.get(slug)?.evm ?? false
}

function toMap<K, T>(records: readonly T[], keyOf: (record: T) => K): ReadonlyMap<K, T> {
  return new Map(records.map((record) => [keyOf(record), record]))
}
