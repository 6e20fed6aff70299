import { z } from 'zod'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { daoTreasury } from '../../shared/datasets/treasury.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import { idValue, type Member, numberOrNull, toMembers, uint32 } from '../formats/formats.ts'
import type { AppContext, Described, Route } from '../route/define-route.ts'
import { daoKind, type EntityKind, type Named, tokenKind } from '../route/entities.ts'
import { findRecords, loadRecords } from './answer.ts'
import { defineComputedList } from './computed-list.ts'
import { type ListRoute, wasThere } from './list.ts'

interface GroupSums extends Pick<Described, 'operation' | 'path' | 'summary'> {
  /** The member that tokens and DAOs are grouped by; the lists have a parameter of the same name. */
  readonly name: 'category' | 'chain'
  readonly plural: string
  /** The schema's name in the documentation. */
  readonly schema: string
  /** Added to the description. */
  readonly note: string
  readonly groups: (registry: Registry) => readonly { readonly id: string; readonly slug: string }[]
  /** Slugs of the groups of an entity. */
  readonly groupsOf: <E extends Named>(kind: EntityKind<E>, registry: Registry, entity: E) => readonly string[]
  /** The lists whose records are summed. */
  readonly tokens: ListRoute
  readonly treasuries: ListRoute
}

/** Some members of one record of a list. */
interface Row {
  readonly key: number
  readonly asOf: number
  readonly values: readonly (number | null)[]
}

type Context = AppContext & { readonly signal: AbortSignal }

/** Some numeric members of each record of a list, by key: the order decides how their sums are rounded. */
async function readMembers(
  context: Context,
  list: ListRoute,
  paths: readonly string[],
  at: number | undefined,
): Promise<Row[]> {
  const members = toMembers(list.record)
  const source = list.toSource(context, at)
  const set = await findRecords(context.chunks, source, () => loadRecords(context, source))
  const columns = set.columns(paths.map((path) => members.get(path) as Member))
  const rows = set.records.map(({ key, asOf }, index) => ({
    ...{ key, asOf },
    values: columns.map((valueAt) => valueAt(index) as number | null),
  }))
  return rows.sort((a, b) => a.key - b.key)
}

/** The sum of the known values of a member; null if no value is known. */
function sumOf(rows: readonly Row[], member: number): number | null {
  const present = rows.map(({ values }) => values[member] ?? null).filter((value) => value !== null)
  return present.length === 0 ? null : present.reduce((sum, value) => sum + value, 0)
}

const TOKEN_MEMBERS = ['financialData.marketCap', 'financialData.volume24h', 'financialData.percentChange24h'] as const
const [CAP, VOLUME, CHANGE] = [0, 1, 2] as const

/** A treasury of which holdings could not be read has no known value. */
const isWhole = ({ values: [, isPartial = null] }: Row) => isPartial !== 1

/** The change of the summed market cap at today's supplies, in percent; null if no change is known. */
function toChange(rows: readonly Row[]): number | null {
  let [now, before] = [0, 0]
  for (const { values } of rows) {
    const [cap, change] = [values[CAP] ?? null, values[CHANGE] ?? null]
    // A change of -100 % or less gives no earlier value.
    if (cap === null || change === null || change <= -100) continue
    now += cap
    before += cap / (1 + change / 100)
  }
  return before > 0 ? 100 * (now / before - 1) : null
}

const toRecord = ({ name, plural, schema }: GroupSums) =>
  z
    .strictObject({
      [name]: idValue.describe(`Id of the ${name}, a record of /data/${plural}.`),
      tokens: uint32.describe('Live tokens that are listed in /data/tokens.'),
      daos: uint32.describe('Live DAOs.'),
      marketCapUsd: numberOrNull.describe(
        'Sum of the known market caps of the tokens, in US dollars; null if none is known.',
      ),
      treasuryUsd: numberOrNull.describe(
        'Sum of the known treasuries of the DAOs, in US dollars; null if none is known.',
      ),
      volume24hUsd: numberOrNull.describe(
        'Sum of the known `volume24h` of the tokens, in US dollars; null if none is known.',
      ),
      change24h: numberOrNull.describe(
        'Change over 24 hours of the total market cap at current supplies, in percent, over the tokens whose market cap and price change are known; null if there are none.',
      ),
    })
    .meta({ id: schema, description: `The tokens and DAOs of one ${name} together.` })

/** A route with sums over tokens and DAOs by group, computed from the records of their lists (docs/contract.md, section 9). */
export function defineGroupSums(sums: GroupSums): Route {
  const { name, tokens, treasuries } = sums
  return defineComputedList({
    operation: sums.operation,
    path: sums.path,
    tag: 'Aggregated',
    summary: sums.summary,
    description: `Sums over the records of /data/tokens and /data/daos/treasury with this \`${name}\`, the largest market cap first. ${sums.note} A sum is null if nothing of it is known; one without any tokens and DAOs is listed as well. With \`asOf\` over the records of that moment; what a token of the same DAO was exchanged for counts from that day on.`,
    name: `aggregated-${sums.plural}`,
    record: toRecord(sums),
    hasPast: true,
    datasets: [tokenPrices, daoTreasury],
    find: async (context, at) => {
      const { tokenByKey } = context.registry
      const [listed, ofTreasuries] = await Promise.all([
        readMembers(context, tokens, TOKEN_MEMBERS, at),
        readMembers(context, treasuries, ['treasuryData.valueUsd', 'treasuryData.isPartial'], at),
      ])
      // Before the exchange both the token and its successor were listed, with the same supply: only one may count.
      const ofTokens = listed.filter(({ key }) => at === undefined || (tokenByKey.get(key)?.since ?? at) <= at)
      const times = [...ofTokens, ...ofTreasuries].map((one) => one.asOf)
      return {
        records: sumGroups(sums, context.registry, { tokens: ofTokens, treasuries: ofTreasuries.filter(isWhole), at }),
        asOf: times.length === 0 ? null : times.reduce((a, b) => Math.max(a, b)),
      }
    },
  })
}

/** The record of each group, the largest market cap first. */
function sumGroups(
  { name, groups, groupsOf }: GroupSums,
  registry: Registry,
  rows: { readonly tokens: readonly Row[]; readonly treasuries: readonly Row[]; readonly at: number | undefined },
) {
  const { at } = rows
  const toGroups = <E extends Named>(kind: EntityKind<E>) => {
    const slugs = new Map(kind.all(registry).map((one) => [one.key, groupsOf(kind, registry, one)]))
    return (slug: string) => (one: { readonly key: number }) => slugs.get(one.key)?.includes(slug) ?? false
  }
  const [isToken, isDao] = [toGroups(tokenKind), toGroups(daoKind)]
  const daos = registry.daos.filter((dao) => (at === undefined ? dao.live : wasThere(dao, at)))
  const records = groups(registry).map(({ id, slug }) => {
    const tokens = rows.tokens.filter(isToken(slug))
    return {
      [name]: id,
      tokens: tokens.length,
      daos: daos.filter(isDao(slug)).length,
      marketCapUsd: sumOf(tokens, CAP),
      treasuryUsd: sumOf(rows.treasuries.filter(isDao(slug)), 0),
      volume24hUsd: sumOf(tokens, VOLUME),
      change24h: toChange(tokens),
    }
  })
  return records.sort((a, b) => (b.marketCapUsd ?? -1) - (a.marketCapUsd ?? -1))
}
