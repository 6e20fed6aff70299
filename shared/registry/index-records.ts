import { toId, toKey } from '../ids.ts'
import type { Chain, Token } from './entities.ts'
import type { ElementRecord, IndexRecord } from './index-schema.ts'
import { addressMistakes, toStoredAddress } from './references.ts'

/** A member of the basket with its quantity as an exact decimal, in whole tokens. */
export interface Element {
  readonly token: Token
  readonly quantity: string
}

export interface Composition {
  readonly id: string
  /** Unix milliseconds. */
  readonly validFrom: number
  readonly elements: readonly Element[]
}

/** The index: a basket of DAO tokens, and the Index Token that represents it on a chain. */
export interface BasketIndex {
  readonly id: string
  /** The index's integer key in ClickHouse. */
  readonly key: number
  readonly name: string
  /** Unix milliseconds. */
  readonly launch: number
  readonly token: {
    /** Slug of a chain. */
    readonly chain: string
    /** Lower-case on EVM chains. */
    readonly contractAddress: string
    readonly mode: 'setToken' | 'eth'
  }
  /** Oldest first; the first is valid at the launch. */
  readonly compositions: readonly Composition[]
}

interface Records {
  readonly tokens: readonly Token[]
  readonly chainBySlug: ReadonlyMap<string, Chain>
}

const FILE = 'index.json'

/**
 * Resolves the tokens of the index record. Members may have ended since: past compositions stay valid. Adds every
 * mistake to `mistakes`; the result is complete only without mistakes.
 */
export function toIndex(record: IndexRecord, records: Records, mistakes: string[]): BasketIndex {
  const { chain, contractAddress, mode } = record.token
  const evm = records.chainBySlug.get(chain)?.evm
  if (evm === undefined) mistakes.push(`${FILE}: token.chain: ${chain} is not in chains.json`)
  mistakes.push(...addressMistakes(`${FILE}: token`, 'contractAddress', contractAddress, evm))
  const id = toId('index', record.slug)
  const launch = Date.parse(record.launch)
  const compositions = record.compositions.map(({ validFrom, elements }, at) => {
    const place = `${FILE}: compositions[${at}]`
    const found = toElements(elements, records, place, mistakes)
    return toComposition(Date.parse(validFrom), found)
  })
  mistakes.push(...orderMistakes(record, launch, compositions))
  return {
    id,
    key: toKey(id),
    name: record.name,
    launch,
    token: { chain, contractAddress: toStoredAddress(contractAddress, evm ?? false), mode },
    compositions,
  }
}

/** The id depends on the content of a composition only. Order and trailing zeros do not change it. */
export function toComposition(validFrom: number, elements: readonly Element[]): Composition {
  const members = elements.map(({ token, quantity }) => `${token.id} ${quantity}`).sort()
  return { id: toId('composition', new Date(validFrom).toISOString(), ...members), validFrom, elements }
}

/** Resolves the tokens of elements. Omits unknown and repeated ones and adds a mistake with `place` for each. */
export function toElements(
  elements: readonly ElementRecord[],
  { tokens }: Pick<Records, 'tokens'>,
  place: string,
  mistakes: string[],
): Element[] {
  const seen = new Set<string>()
  const found = findTokens(elements, tokens)
  return elements.flatMap(({ token: reference, quantity }, at) => {
    const [token, ...more] = found.get(reference.toLowerCase())?.filter((one) => matchesReference(one, reference)) ?? []
    const mistake =
      token === undefined
        ? `${reference} is not in tokens.json`
        : more.length > 0
          ? `${reference} is the symbol of several tokens: write <chain>/<address>`
          : seen.has(token.id)
            ? `${reference} is listed twice`
            : undefined
    if (mistake !== undefined) mistakes.push(`${place}.elements[${at}].token: ${mistake}`)
    if (mistake !== undefined || token === undefined) return []
    seen.add(token.id)
    return [{ token, quantity: toPlainDecimal(quantity) }]
  })
}

/** The composition in force at a time in Unix milliseconds: the newest one that started by then. */
export function findComposition(index: BasketIndex, at: number): Composition | undefined {
  return index.compositions.findLast(({ validFrom }) => validFrom <= at)
}

/** The tokens that the elements may refer to, by the reference in lower case. */
function findTokens(elements: readonly ElementRecord[], tokens: readonly Token[]): ReadonlyMap<string, Token[]> {
  const found = new Map(elements.map(({ token }) => [token.toLowerCase(), [] as Token[]]))
  for (const token of tokens) {
    found.get(token.symbol.toLowerCase())?.push(token)
    found.get(toAddressName(token))?.push(token)
  }
  return found
}

const toAddressName = ({ chain, contractAddress }: Token) => `${chain}/${contractAddress}`.toLowerCase()

function matchesReference(token: Token, reference: string): boolean {
  return reference === token.symbol || reference.toLowerCase() === toAddressName(token)
}

/** Strips trailing zeros: 1.50 and 1.5 are one quantity. */
function toPlainDecimal(text: string): string {
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text
}

function orderMistakes(record: IndexRecord, launch: number, compositions: readonly Composition[]): string[] {
  const late = (compositions[0]?.validFrom ?? launch) > launch
  const disorder = compositions.flatMap(({ validFrom }, at) =>
    at > 0 && validFrom <= (compositions[at - 1]?.validFrom ?? 0)
      ? [`${FILE}: compositions[${at}].validFrom: ${record.compositions[at]?.validFrom} is not after the one before`]
      : [],
  )
  const first = `${FILE}: compositions[0].validFrom: ${record.compositions[0]?.validFrom} is after the launch`
  return late ? [first, ...disorder] : disorder
}
