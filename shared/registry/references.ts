import { validate as isAddress } from 'ox/Address'
import { groupBy } from '../group-by.ts'
import { toId, toKey } from '../ids.ts'
import type { Steps } from '../turns.ts'
import type { Placed, RegistryFile } from './registry-file.ts'
import type { ChainRecord, DaoRecord, TokenRecord } from './schema.ts'
import type { RegistryFiles } from './source.ts'

const EVM_ADDRESS = /^0x[0-9a-fA-F]{40}$/

/** An address as stored and compared: EVM addresses in lower case, others as written. */
export function toStoredAddress(address: string, evm: boolean): string {
  return evm ? address.toLowerCase() : address
}

/** Finds mistakes between records: duplicates, unknown references, addresses in a form unlike their chain's. */
export function* checkReferences(files: RegistryFiles): Steps<string[]> {
  const { categories, chains, tokens, daos } = toLists(files)
  const evmBySlug = new Map(chains.map(({ record }) => [record.slug, record.evm]))
  const checks = [
    () => duplicateMistakes(categories, 'slug', (record) => record.slug),
    () => duplicateMistakes(chains, 'slug', (record) => record.slug),
    () => duplicateMistakes(chains, 'chainId', (record) => record.chainId),
    () => chains.flatMap(stablecoinMistakes),
    () => allTokenMistakes(files, evmBySlug),
    ...tokenDuplicateChecks(tokens, evmBySlug),
    () => daos.flatMap((dao) => daoMistakes(dao, files, evmBySlug)),
    () => duplicateMistakes(daos, 'slug', (record) => record.slug),
    // Votes are read incrementally by space. If two DAOs shared a space, each would miss the votes that the other has
    // read.
    () => duplicateMistakes(toSpaces(daos), 'snapshotSpace', (space) => space),
    () => duplicateMistakes(toGovernors(daos), 'governors', (governor) => governor),
    () => duplicateMistakes(daos, 'key', (record) => toKey(toId('dao', record.slug))),
    () => primaryMistakes(tokens),
  ]
  const mistakes: string[] = []
  for (const check of checks) {
    // One by one: the list may exceed the argument limit of a call.
    for (const mistake of check()) mistakes.push(mistake)
    yield
  }
  return mistakes
}

const toLists = ({ categories, chains, tokens, daos }: RegistryFiles) => ({
  categories: categories.records,
  chains: chains.records,
  tokens: tokens.records,
  daos: daos.records,
})

/** Every current and former space of every DAO. */
function toSpaces(daos: readonly Placed<DaoRecord>[]): Placed<string | null>[] {
  return daos.flatMap(({ place, record }) =>
    [record.snapshotSpace, ...record.formerSnapshotSpaces].map((space) => ({ place, record: space })),
  )
}

/** Every governor of every DAO. */
function toGovernors(daos: readonly Placed<DaoRecord>[]): Placed<string>[] {
  return daos.flatMap(({ place, record }) =>
    record.governors.map(({ chain, address }) => ({ place, record: `${chain}:${address.toLowerCase()}` })),
  )
}

/** Returns one mistake for each record with the same value as an earlier record. Null values do not count. */
export function duplicateMistakes<T>(
  records: readonly Placed<T>[],
  field: string,
  fieldOf: (record: T) => string | number | null,
): string[] {
  const firstPlace = new Map<string | number, string>()
  return records.flatMap(({ place, record }) => {
    const value = fieldOf(record)
    if (value === null) return []
    const first = firstPlace.get(value)
    if (first === undefined) firstPlace.set(value, place)
    return first === undefined ? [] : [`${place}: ${field}: ${value} is already used by ${first}`]
  })
}

function tokenDuplicateChecks(
  tokens: readonly Placed<TokenRecord>[],
  evmBySlug: ReadonlyMap<string, boolean>,
): (() => string[])[] {
  const addressOf = (record: TokenRecord) =>
    toStoredAddress(record.contractAddress, evmBySlug.get(record.chain) ?? false)
  // A token on a second chain with the same market-data id would count its market cap twice in the aggregates.
  const live = tokens.filter(({ record }) => record.live || record.ended !== null)
  return [
    () => duplicateMistakes(tokens, 'contractAddress', (record) => `${record.chain}:${addressOf(record)}`),
    () =>
      duplicateMistakes(distinctAddresses(tokens, addressOf), 'key', (record) =>
        toKey(toId('token', record.chain, addressOf(record))),
      ),
    () => duplicateMistakes(live, 'cmcId', (record) => record.cmcId),
    () => duplicateMistakes(live, 'coingeckoId', (record) => record.coingeckoId),
  ]
}

/** Removes repeated addresses, which have equal keys and are reported as duplicates already. */
function distinctAddresses(
  tokens: readonly Placed<TokenRecord>[],
  addressOf: (record: TokenRecord) => string,
): Placed<TokenRecord>[] {
  return [...new Map(tokens.map((token) => [`${token.record.chain}:${addressOf(token.record)}`, token])).values()]
}

function stablecoinMistakes({ place, record: { evm, stablecoins } }: Placed<ChainRecord>): string[] {
  const addresses = stablecoins.map(({ address }) => toStoredAddress(address, evm))
  return [
    ...addresses.flatMap((address, index) => addressMistakes(place, `stablecoins[${index}].address`, address, evm)),
    ...repeated(addresses).map((address) => `${place}: stablecoins: ${address} is listed twice`),
  ]
}

function allTokenMistakes(files: RegistryFiles, evmBySlug: ReadonlyMap<string, boolean>): string[] {
  const nameOf = (chain: string, address: string) =>
    `${chain}/${toStoredAddress(address, evmBySlug.get(chain) ?? false)}`
  const tokens = files.tokens.records
  const tokenByName = new Map(tokens.map(({ record }) => [nameOf(record.chain, record.contractAddress), record]))
  const findToken = (chain: string, address: string) => tokenByName.get(nameOf(chain, address))
  return tokens.flatMap((token) => tokenMistakes(token, files, evmBySlug, findToken))
}

function tokenMistakes(
  { place, record }: Placed<TokenRecord>,
  files: RegistryFiles,
  evmBySlug: ReadonlyMap<string, boolean>,
  findToken: (chain: string, address: string) => TokenRecord | undefined,
): string[] {
  const hasMarketDataId = record.cmcId !== null || record.coingeckoId !== null
  return [
    ...unknownReference(place, 'chain', record.chain, files.chains),
    ...unknownReference(place, 'dao', record.dao, files.daos),
    ...addressMistakes(place, 'contractAddress', record.contractAddress, evmBySlug.get(record.chain)),
    ...successorMistakes({ place, record }, files.tokens.file, findToken),
    ...formerNameMistakes(place, record.formerNames, [record.symbol, record.name]),
    ...(record.live && !hasMarketDataId ? [`${place}: cmcId: a live token needs a cmcId or a coingeckoId`] : []),
    ...(record.livePrice === true && !(record.live && hasMarketDataId)
      ? [`${place}: livePrice: needs a live token with a market-data id`]
      : []),
  ]
}

function successorMistakes(
  { place, record }: Placed<TokenRecord>,
  file: string,
  findToken: (chain: string, address: string) => TokenRecord | undefined,
): string[] {
  const successor = record.ended?.successor
  if (successor === undefined) return []
  const [chain = '', address = ''] = successor.split('/')
  const named = findToken(chain, address)
  if (named === undefined) return [`${place}: ended.successor: ${successor} is not a <chain>/<address> of ${file}`]
  return named === record ? [`${place}: ended.successor: is the token itself`] : []
}

function formerNameMistakes(place: string, formerNames: readonly string[], current: readonly string[]): string[] {
  return [
    ...repeated(formerNames).map((name) => `${place}: formerNames: ${name} is listed twice`),
    ...formerNames
      .filter((name) => current.includes(name))
      .map((name) => `${place}: formerNames: ${name} is the current name`),
  ]
}

function daoMistakes(
  { place, record }: Placed<DaoRecord>,
  files: RegistryFiles,
  evmBySlug: ReadonlyMap<string, boolean>,
): string[] {
  const treasuryKeys = record.treasuries.map(
    ({ chain, address }) => `${chain}:${toStoredAddress(address, evmBySlug.get(chain) ?? false)}`,
  )
  return [
    ...record.categories.flatMap((slug) => unknownReference(place, 'categories', slug, files.categories)),
    ...record.chains.flatMap((slug) => unknownReference(place, 'chains', slug, files.chains)),
    ...record.treasuries.flatMap(({ chain, address }, index) => [
      ...unknownReference(place, `treasuries[${index}].chain`, chain, files.chains),
      ...addressMistakes(place, `treasuries[${index}].address`, address, evmBySlug.get(chain)),
    ]),
    ...record.governors.flatMap(({ chain, address }, index) => [
      ...unknownReference(place, `governors[${index}].chain`, chain, files.chains),
      ...governorMistakes(place, `governors[${index}]`, address, evmBySlug.get(chain)),
    ]),
    ...record.governors.flatMap(({ chain, timelocks = [] }, index) =>
      timelocks.flatMap(({ address }, at) =>
        governorMistakes(place, `governors[${index}].timelocks[${at}]`, address, evmBySlug.get(chain)),
      ),
    ),
    ...votesOnMistakes(place, record.governors),
    ...countingMistakes(place, record.governors),
    ...(record.votingToken === null ? [] : [record.votingToken]).flatMap(({ chain, address }) => [
      ...unknownReference(place, 'votingToken.chain', chain, files.chains),
      ...governorMistakes(place, 'votingToken', address, evmBySlug.get(chain)),
    ]),
    ...formerNameMistakes(place, record.formerNames, [record.name]),
    ...repeated(record.categories).map((slug) => `${place}: categories: ${slug} is listed twice`),
    ...repeated(record.chains).map((slug) => `${place}: chains: ${slug} is listed twice`),
    ...repeated(treasuryKeys).map((key) => `${place}: treasuries: ${key} is listed twice`),
  ]
}

/** A DAO has one token that stands for it: its only one, or the one marked primary. */
function primaryMistakes(tokens: readonly Placed<TokenRecord>[]): string[] {
  return [...groupBy(tokens, ({ record }) => record.dao)].flatMap(([dao, ownTokens]) => {
    const primaries = ownTokens.filter(({ record }) => record.primary).length
    if (primaries === 1 || (primaries === 0 && ownTokens.length === 1)) return []
    const places = ownTokens.map(({ place }) => place).join(', ')
    return [`${places}: primary: one token of ${dao} must be primary, ${primaries} are`]
  })
}

function unknownReference<T>(place: string, field: string, slug: string, target: RegistryFile<T>): string[] {
  if (!target.readable || target.names.has(slug)) return []
  return [`${place}: ${field}: ${slug} is not in ${target.file}`]
}

/** A mistyped address would be read for years without any vote, so its checksum is required. */
function governorMistakes(place: string, field: string, address: string, evm: boolean | undefined): string[] {
  if (evm === false) return [`${place}: ${field}.chain: it needs an EVM chain`]
  // An address without letters has no checksum.
  const hasChecksum = address !== address.toLowerCase() || /^0x\d+$/.test(address)
  if (hasChecksum && isAddress(address)) return []
  return [`${place}: ${field}.address: ${address} is not an address with its checksum`]
}

/** The governor with the proposals must be read as well, or its votes would have no proposals. */
function votesOnMistakes(place: string, governors: DaoRecord['governors']): string[] {
  const own = new Set(governors.flatMap((one) => (one.votesOn === undefined ? [`${one.chain}/${one.address}`] : [])))
  return governors.flatMap(({ votesOn }, index) =>
    votesOn === undefined || own.has(votesOn)
      ? []
      : [`${place}: governors[${index}].votesOn: ${votesOn} is no governor of the DAO with proposals of its own`],
  )
}

/** Only OpenZeppelin's governors have votes with parameters. */
function countingMistakes(place: string, governors: DaoRecord['governors']): string[] {
  return governors.flatMap(({ counting, family }, index) =>
    counting !== 'fractional' || family === 'openzeppelin'
      ? []
      : [`${place}: governors[${index}].counting: ${family} has no fractional votes, remove it or set it to plain`],
  )
}

/** `evm` is undefined for an unknown chain, which is reported separately. */
export function addressMistakes(place: string, field: string, address: string, evm: boolean | undefined): string[] {
  if (evm !== true || EVM_ADDRESS.test(address)) return []
  return [`${place}: ${field}: ${address} is not 0x and 40 hex digits`]
}

function repeated(values: readonly string[]): string[] {
  return [...new Set(values.filter((value, index) => values.indexOf(value) !== index))]
}
