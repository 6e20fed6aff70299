import { runCommand } from '../../shared/command.ts'
import { readCommandLine } from '../../shared/command-line.ts'
import { type Config, loadCommandConfig } from '../../shared/config/config.ts'
import { DataError } from '../../shared/errors.ts'
import { DAY_MS, INTERVAL_SECONDS, toBucketStart } from '../../shared/intervals.ts'
import { openLedger } from '../../shared/ledger/ledger.ts'
import { isMain } from '../../shared/process.ts'
import type { Token } from '../../shared/registry/entities.ts'
import { readRegistry } from '../../shared/store/store.ts'
import type { Stores } from '../backfill/until-done.ts'
import { jobs } from '../jobs/list.ts'
import prices from '../jobs/prices.ts'
import { type FoundSuspect, findSuspects, toEvidence, writeSuspects } from '../prices/state.ts'
import { announce, noteChange } from '../run/runner.ts'
import { createRecomputation } from '../schedule/recompute.ts'
import { toTime } from '../terminal/option-time.ts'
import { toShortTime, toTable } from '../terminal/text-table.ts'
import { withStores } from './with-stores.ts'

const HELP = `npm run prices -- list [options]
npm run prices -- release --token <id, name or symbol> --from <time> --to <time> [options]

A price is not stored if it differs too much from the last one and no other provider confirms it. list prints these prices
with the reason. release stores those of one token at their own times, for example after an exchange of the token at another
rate: the series, what is computed from it and alerts follow.

  --token           the token; list has all by default
  --from, --to      ISO dates or date-times, UTC, of the slots; from is inclusive, to exclusive. list has the last day by default
  --provider        only the prices of this provider
  --dry-run         release only prints what it would store
  --json            list as JSON
  --help

Exit codes: 0 done; 1 wrong options or an unavailable store; 3 release found no price.`

const NOTHING_FOUND = 3

async function main(): Promise<void> {
  const { values, positionals } = readCommandLine({
    allowPositionals: true,
    options: {
      token: { type: 'string' },
      from: { type: 'string' },
      to: { type: 'string' },
      provider: { type: 'string' },
      'dry-run': { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(HELP)
  const [action, ...more] = positionals
  const mistakes: string[] = []
  const isRelease = action === 'release'
  if (!isRelease && action !== 'list') mistakes.push(`${action ?? 'no action'}: expected list or release`)
  if (more.length > 0) mistakes.push(`${more.join(' ')}: expected no further arguments`)
  if (isRelease && values.token === undefined) mistakes.push('--token is required: release stores prices of one token')
  const isRequired = isRelease || values.from !== undefined || values.to !== undefined
  const from = isRequired ? toTime('--from', values.from, mistakes) : Date.now() - DAY_MS
  const to = isRequired ? toTime('--to', values.to, mistakes) : Date.now()
  if (from !== undefined && to !== undefined && from >= to) mistakes.push('--from is not before --to')
  if (mistakes.length > 0 || from === undefined || to === undefined) throw new DataError('payload', mistakes.join('\n'))
  const config = loadCommandConfig()
  await withStores(config, async (stores) => {
    const { tokens } = await readRegistry(stores.db)
    const token = values.token === undefined ? undefined : findToken(tokens, values.token)
    const found = await findSuspects(stores.db, { tokens: token && [token.key], from, to })
    const selected = found.filter(({ provider }) => values.provider === undefined || provider === values.provider)
    if (!isRelease || token === undefined) {
      print(selected, tokens, values.json)
      return
    }
    const open = selected.filter(({ state }) => state !== 'released')
    print(open, tokens, values.json)
    if (open.length === 0) process.exitCode = NOTHING_FOUND
    else if (!values['dry-run']) {
      for (const suspect of open) await releaseSuspect(stores, config, token, suspect)
      console.error(`${open.length} released`)
    }
  })
}

/** @throws DataError `payload` if no token or several have the id, name or symbol. */
function findToken(tokens: readonly Token[], text: string): Token {
  const matches = tokens.filter(({ id, name, symbol }) => [id, name, symbol].includes(text))
  const [token, second] = matches
  if (token === undefined) throw new DataError('payload', `--token ${text}: no token has this id, name or symbol`)
  if (second === undefined) return token
  const ids = matches.map(({ id, name }) => `${id} (${name})`).join(', ')
  throw new DataError('payload', `--token ${text}: several tokens have it, use one of the ids ${ids}`)
}

/**
 * Stores a suspect at its own time. Every step may be repeated: the price comes first, and its state last, so that an
 * interrupted command finds it again.
 */
export async function releaseSuspect(
  { db, redis, prefix, now }: Stores,
  config: Config,
  token: Token,
  suspect: FoundSuspect,
): Promise<void> {
  const { provider, at, slot, others } = suspect
  const evidence = toEvidence({
    quote: suspect,
    agreement: 'released',
    checkedWith: others.map((one) => one.provider),
    deviation: null,
  })
  const row = { ...suspect.row, ...evidence, provider }
  await db.insert({ table: prices.dataset.table, rows: [row], every: { collected_at: new Date(now()).toISOString() } })
  const from = toBucketStart(at, prices.cadence)
  const to = from + INTERVAL_SECONDS[prices.cadence] * 1000
  const payload = { kind: 'range' as const, from, to, interval: prices.cadence }
  await openLedger(db, prices.dataset).record({
    payload,
    results: [{ provider, rows: [row], read: [], steps: [] }],
    answers: [{ entity: token, state: 'rows', provider, reason: '', failure: undefined, omitted: '' }],
    now: now(),
  })
  await noteChange({ db, now }, prices, [row])
  const recomputation = createRecomputation(jobs, redis, prefix, db, config.datasetsOff)
  try {
    await recomputation.enqueue(prices.dataset, [row])
  } finally {
    await recomputation.close()
  }
  await announce(prices.dataset, { db, redis, config }, [row])
  await writeSuspects(db, [suspect], { state: 'released', decidedSlot: slot })
}

function print(suspects: readonly FoundSuspect[], tokens: readonly Token[], isJson: boolean): void {
  const names = new Map(tokens.map(({ key, name }) => [key, name]))
  const rows = suspects.map(({ token, slot, provider, price, reason, state, isWithheld }) => ({
    slot: new Date(slot).toISOString(),
    token: names.get(token) ?? String(token),
    provider,
    price,
    state,
    isWithheld,
    reason,
  }))
  if (isJson) {
    console.log(JSON.stringify(rows, null, 2))
    return
  }
  const cells = rows.map((row) => [
    toShortTime(Date.parse(row.slot)),
    row.token,
    row.provider,
    String(row.price),
    row.state,
    row.reason,
  ])
  if (rows.length === 0) console.log('no price is suspect')
  else console.log(toTable(['slot (UTC)', 'token', 'provider', 'price', 'state', 'reason'], cells))
}

if (isMain(import.meta.url)) runCommand(main)
