import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { z } from 'zod'
import { runCommand } from '../../shared/command.ts'
import { loadCommandConfig } from '../../shared/config/config.ts'
import { DataError, toReason } from '../../shared/errors.ts'
import { isMain } from '../../shared/process.ts'
import type { Composition } from '../../shared/registry/index-records.ts'
import { addComposition, planRebalance } from '../../shared/registry/rebalance.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { createDatabase, type Database } from '../../shared/store/clickhouse.ts'

const REGISTRY = join(import.meta.dirname, '../../shared/registry')

const HELP = `npm run index -- rebalance <file.json> --at <time> [options]

Adds a composition to shared/registry/index.json: what one basket of the index holds from --at on. The file is a list
such as [{"token": "UNI", "quantity": "3.5"}, {"token": "ethereum/0x7fc6...", "quantity": "0.2"}]. Repeating a command
changes nothing. Restart workers and API afterwards; they read the registry when they start.

  --at       ISO date or date-time, UTC, after the newest composition's
  --dry-run  tells weights and value before and after, and writes nothing
  --json     tells them as JSON
  --help`

/** One token of the old or the new basket, at its newest stored price. Weights are fractions of one. */
interface Member {
  readonly token: string
  readonly symbol: string
  readonly quantityBefore: string
  readonly quantityAfter: string
  readonly priceUsd: number
  readonly weightBefore: number
  readonly weightAfter: number
}

export interface RebalanceReport {
  readonly composition: string
  readonly validFrom: string
  /** False when the newest composition says the same already: there is nothing to do. */
  readonly isChange: boolean
  readonly valueUsdBefore: number
  readonly valueUsdAfter: number
  readonly members: readonly Member[]
}

/**
 * Plans a rebalance of the index in a registry's folder and, unless `dryRun`, writes it.
 * @throws DataError `payload` that lists every mistake of the proposal, `registry` or `storage` where there is no good one.
 */
export async function rebalance(
  request: { readonly proposed: unknown; readonly at: string; readonly dryRun: boolean },
  db: Database,
  dir: string = REGISTRY,
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

function toValue({ elements }: Composition, prices: ReadonlyMap<number, number>): number {
  return elements.reduce((sum, { token, quantity }) => sum + Number(quantity) * (prices.get(token.key) ?? 0), 0)
}

function toMembers(
  before: Composition,
  after: Composition,
  prices: ReadonlyMap<number, number>,
  values: { before: number; after: number },
): Member[] {
  const all = new Map([...after.elements, ...before.elements].map(({ token }) => [token.key, token]))
  const quantityIn = ({ elements }: Composition, key: number) =>
    elements.find(({ token }) => token.key === key)?.quantity ?? '0'
  return [...all.values()].map((token) => {
    const priceUsd = prices.get(token.key) ?? 0
    const [quantityBefore, quantityAfter] = [quantityIn(before, token.key), quantityIn(after, token.key)]
    const weight = (quantity: string, value: number) => (value === 0 ? 0 : (Number(quantity) * priceUsd) / value)
    return {
      token: token.id,
      symbol: token.symbol,
      quantityBefore,
      quantityAfter,
      priceUsd,
      weightBefore: weight(quantityBefore, values.before),
      weightAfter: weight(quantityAfter, values.after),
    }
  })
}

function print(report: RebalanceReport, dryRun: boolean): void {
  const percent = (share: number) => `${(share * 100).toFixed(2)} %`.padStart(9)
  for (const { symbol, quantityBefore, quantityAfter, weightBefore, weightAfter } of report.members) {
    const quantities = `${quantityBefore} -> ${quantityAfter}`.padEnd(46)
    console.log(`  ${symbol.padEnd(8)} ${quantities} ${percent(weightBefore)} -> ${percent(weightAfter)}`)
  }
  const [before, after] = [report.valueUsdBefore, report.valueUsdAfter].map((value) => value.toFixed(4))
  console.log(`value at the newest stored prices: ${before} USD -> ${after} USD`)
  const what = `composition ${report.composition} from ${report.validFrom} on`
  if (!report.isChange) console.log(`nothing to do: this is ${what} already`)
  else if (dryRun) console.log(`would be ${what}; nothing was written`)
  else console.log(`written: ${what}. Restart workers and API.`)
  if (report.isChange && !dryRun && Date.parse(report.validFrom) < Date.now())
    console.log(`then value the past anew: npm run backfill -- index --from ${report.validFrom} --again`)
}

function readProposal(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch (cause) {
    throw new DataError('payload', `${file} cannot be read as JSON: ${toReason(cause)}`, { cause })
  }
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
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
    else print(report, dryRun)
  } finally {
    await db.close()
  }
}

if (isMain(import.meta.url)) runCommand(main)
