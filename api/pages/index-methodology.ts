import { indexPoints } from '../../shared/datasets/index-points.ts'
import type { BasketIndex, Composition } from '../../shared/registry/index-records.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import { toHtml } from './markdown.ts'

/** Texts of cadences. */
const SLOTS: Readonly<Record<string, string>> = { '5m': '5 minutes', '1h': '1 hour', '1d': '1 day' }

const TOKEN_MODES: Readonly<Record<BasketIndex['token']['mode'], string>> = {
  setToken: 'the components that the Set Protocol contract reports, in ETH',
  eth: 'the ether and wrapped ether of the contract',
}

const toTime = (at: number) => `${new Date(at).toISOString().slice(0, 16).replace('T', ' ')} UTC`
const toMembers = (count: number) => `${count} ${count === 1 ? 'token' : 'tokens'}`
/** Names come from the registry: characters with a meaning in Markdown tables and HTML are escaped. */
const toCell = (text: string) =>
  toHtml(text)
    .replaceAll('|', '\\|')
    .replaceAll(/[\r\n]+/g, ' ')

function toTable(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const toLine = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [heads, heads.map(() => '---'), ...rows].map(toLine).join('\n')
}

const toElements = ({ elements }: Composition) =>
  toTable(
    ['Token', 'Name', 'Quantity', 'Chain', 'Contract'],
    elements.map(({ token, quantity }) => [
      `[${toCell(token.symbol)}](/tokens/${token.id})`,
      ...[toCell(token.name), quantity, toCell(token.chain), `\`${toCell(token.contractAddress)}\``],
    ]),
  )

/** The symbols of tokens that are in one composition and not in another. */
const toAdded = (of: Composition, other: Composition | undefined) => {
  const others = new Set(other?.elements.map(({ token }) => token.id))
  const added = of.elements.filter(({ token }) => !others.has(token.id))
  return added.length === 0 ? 'none' : added.map(({ token }) => toCell(token.symbol)).join(', ')
}

/** The number of members with another quantity than in the composition before. */
function countChanged(of: Composition, before: Composition | undefined): number {
  const quantities = new Map(before?.elements.map(({ token, quantity }) => [token.id, quantity]))
  return of.elements.filter(({ token, quantity }) => (quantities.get(token.id) ?? quantity) !== quantity).length
}

const toChanges = ({ compositions }: BasketIndex) =>
  toTable(
    ['Valid from', 'Tokens', 'Entered', 'Left', 'Other quantities'],
    compositions
      .map((of, at) => {
        const before = compositions[at - 1]
        const left = before === undefined ? 'none' : toAdded(before, of)
        const counts = [String(of.elements.length), toAdded(of, before), left, String(countChanged(of, before))]
        return [toTime(of.validFrom), ...counts]
      })
      .reverse(),
  )

/**
 * The values of the guide to the Index, from the active registry. The text depends on the registry only, not on the clock: the
 * newest composition is the current one, also if it starts soon.
 */
export function toMethodology({ index, chains }: Pick<Registry, 'index' | 'chains'>): Readonly<Record<string, string>> {
  const newest = index.compositions.at(-1)
  if (newest === undefined) throw new Error('the registry was not validated')
  return {
    name: toCell(index.name),
    from: toTime(index.compositions[0]?.validFrom ?? index.launch),
    count: index.compositions.length === 1 ? 'one composition' : `${index.compositions.length} compositions`,
    since: toTime(newest.validFrom),
    members: toMembers(newest.elements.length),
    current: toElements(newest),
    slot: SLOTS[indexPoints.cadence] ?? indexPoints.cadence,
    launch: toTime(index.launch),
    contract: toCell(index.token.contractAddress),
    chain: toCell(chains.find(({ slug }) => slug === index.token.chain)?.name ?? index.token.chain),
    tokenMode: TOKEN_MODES[index.token.mode],
    changes: toChanges(index),
  }
}
