import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { runCommand } from '../../shared/command.ts'
import { readCommandLine } from '../../shared/command-line.ts'
import { loadCommandConfig } from '../../shared/config/config.ts'
import { DataError, toReason } from '../../shared/errors.ts'
import { isMain } from '../../shared/process.ts'
import type { Composition } from '../../shared/registry/index-records.ts'
import { addComposition, planRebalance } from '../../shared/registry/rebalance.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { SHIPPED } from '../../shared/registry/source.ts'
import { createDatabase, type Database } from '../../shared/store/store.ts'

const HELP = `npm run index -- rebalance <file.json> --at <time> [options]

Adds a composition to shared/registry/index.json: the members of one basket of the index from --at on. The file is a list
such as [{"token": "UNI", "quantity": "3.5"}, {"token": "ethereum/0x7fc6...", "quantity": "0.2"}]. Repeating a command
changes nothing. npm run migrate then activates the composition.

  --at       ISO date or date-time, UTC, after the start of the newest composition
  --dry-run  prints weights and value before and after, and writes nothing
  --json     prints them as JSON
  --help`

/**
 * One token of the old or the new basket, at its newest stored price. Weights are fractions of one. Null is unknown: a
 * removed token may have no price, and then the value of the old basket is unknown, too.
 */
interface Member {
  readonly token: string
  readonly symbol: string
  readonly quantityBefore: string
  readonly quantityAfter: string
  readonly priceUsd: number | null
  readonly weightBefore: number | null
  readonly weightAfter: number | null
}

export interface RebalanceReport {
  readonly composition: string
  readonly validFrom: string
  /** False if the newest composition is identical, so there is nothing to do. */
  readonly isChange: boolean
  /** Null if a member has no price. */
  readonly valueUsdBefore: number | null
  readonly valueUsdAfter: number | null
  readonly members: readonly Member[]
}

/**
 * Plans a rebalance of the index in a registry folder and writes it unless `dryRun` is set.
 * @throws DataError `payload` that lists every mistake of the proposal, `registry` or `storage` if the registry or the
 *   prices cannot be read.
 */
export async function rebalance(
  request: { readonly proposed: unknown; readonly at: string; readonly dryRun: boolean },
  db: Database,
  dir: string = SHIPPED,
): Promise<RebalanceReport> {
  const { before, after, isChange, record } = planRebalance(request.proposed, request.at, loadRegistry(dir))
  const prices = await readPrices(db, [before, after])
  const unpriced = after.elements.filter(({ token }) => !prices.has(token.key))
  if (unpriced.length > 0) {
    throw new DataError('payload', unpriced.map(({ token }) => `${token.symbol}: no price is stored of it`).join('\n'))
  }
  if (isChange && !request.dryRun) addComposition(dir, record)
  const [valueBefore, valueAfter] = [toValue(before, prices), toValue(after, prices)]
  return {
    composition: after.id,
    validFrom: new Date(after.validFrom).toISOString(),
    isChange,
    valueUsdBefore: valueBefore,
    valueUsdAfter: valueAfter,
    members: toMembers(before, after, prices, { before: valueBefore, after: valueAfter }),
  }
}

const newestPrice = z.object({ token: z.number(), newest_price: z.number() })

async function readPrices(db: Database, compositions: readonly Composition[]): Promise<ReadonlyMap<number, number>> {
  const tokens = compositions.flatMap(({ elements }) => elements.map(({ token }) => token.key))
  const rows = await db.rows({
    name: 'newest-prices',
    sql: `SELECT token, argMax(price, observed_at) AS newest_price FROM token_prices FINAL
WHERE has({tokens: Array(UInt64)}, token) GROUP BY token`,
    params: { tokens },
    schema: newestPrice,
  })
  return new Map(rows.map(({ token, newest_price }) => [token, newest_price]))
}

/** Returns the value of a basket in US dollars, or null if a member's price is unknown. */
function toValue({ elements }: Composition, prices: ReadonlyMap<number, number>): number | null {
  return elements.reduce<number | null>((sum, { token, quantity }) => {
    const price = prices.get(token.key)
    return sum === null || price === undefined ? null : sum + Number(quantity) * price
  }, 0)
}

/**
 * Returns the share of the basket's value, 0 if the quantity is 0, or null if the price or the basket's value is
 * unknown.
 */
function toWeight(quantity: string, priceUsd: number | null, value: number | null): number | null {
  if (Number(quantity) === 0) return 0
  return priceUsd === null || value === null || value === 0 ? null : (Number(quantity) * priceUsd) / value
}

function toMembers(
  before: Composition,
  after: Composition,
  prices: ReadonlyMap<number, number>,
  values: { before: number | null; after: number | null },
): Member[] {
  const all = new Map([...after.elements, ...before.elements].map(({ token }) => [token.key, token]))
  const quantityIn = ({ elements }: Composition, key: number) =>
    elements.find(({ token }) => token.key === key)?.quantity ?? '0'
  return [...all.values()].map((token) => {
    const priceUsd = prices.get(token.key) ?? null
    const [quantityBefore, quantityAfter] = [quantityIn(before, token.key), quantityIn(after, token.key)]
    return {
      token: token.id,
      symbol: token.symbol,
      quantityBefore,
      quantityAfter,
      priceUsd,
      weightBefore: toWeight(quantityBefore, priceUsd, values.before),
      weightAfter: toWeight(quantityAfter, priceUsd, values.after),
    }
  })
}

const UNKNOWN = 'not known'
const toPercent = (share: number | null) =>
  (share === null ? UNKNOWN : `${(share * 100).toFixed(2)} %`).padStart(UNKNOWN.length)
const toDollars = (value: number | null) => (value === null ? UNKNOWN : `${value.toFixed(4)} USD`)

/** Formats the report. `now` is in Unix milliseconds. */
export function toRebalanceText(report: RebalanceReport, dryRun: boolean, now: number): string {
  const members = report.members.map(({ symbol, quantityBefore, quantityAfter, weightBefore, weightAfter }) => {
    const quantities = `${quantityBefore} -> ${quantityAfter}`.padEnd(46)
    return `  ${symbol.padEnd(8)} ${quantities} ${toPercent(weightBefore)} -> ${toPercent(weightAfter)}`
  })
  const values = [report.valueUsdBefore, report.valueUsdAfter].map(toDollars).join(' -> ')
  return [...members, `value at the newest stored prices: ${values}`, ...toOutcome(report, dryRun, now)].join('\n')
}

function toOutcome({ composition, validFrom, isChange }: RebalanceReport, dryRun: boolean, now: number): string[] {
  const what = `composition ${composition} from ${validFrom} on`
  if (!isChange) return [`nothing to do: this is ${what} already`]
  if (dryRun) return [`would be ${what}; nothing was written`]
  const written = `written: ${what}. npm run migrate activates it.`
  if (Date.parse(validFrom) >= now) return [written]
  return [written, `then compute the past values again: npm run backfill -- index --from ${validFrom} --again`]
}

function readProposal(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch (cause) {
    throw new DataError('payload', `${file} cannot be read as JSON: ${toReason(cause)}`, { cause })
  }
}

async function main(): Promise<void> {
  const { values, positionals } = readCommandLine({
    allowPositionals: true,
    options: {
      at: { type: 'string' },
      'dry-run': { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(HELP)
  const [command, file] = positionals
  if (command !== 'rebalance' || file === undefined || values.at === undefined || positionals.length > 2) {
    throw new DataError('payload', `rebalance, one file and --at are needed\n\n${HELP}`)
  }
  const proposed = readProposal(file)
  const db = createDatabase(loadCommandConfig().clickhouse, 'write')
  try {
    const dryRun = values['dry-run']
    const report = await rebalance({ proposed, at: values.at, dryRun }, db)
    if (values.json) console.log(JSON.stringify(report, null, 2))
    else console.log(toRebalanceText(report, dryRun, Date.now()))
  } finally {
    await db.close()
  }
}

if (isMain(import.meta.url)) runCommand(main)
