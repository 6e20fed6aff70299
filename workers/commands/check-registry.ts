import { runCommand } from '../../shared/command.ts'
import { readCommandLine } from '../../shared/command-line.ts'
import { loadConfig } from '../../shared/config/config.ts'
import { DataError } from '../../shared/errors.ts'
import { isMain } from '../../shared/process.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { createLog } from '../../shared/telemetry/log.ts'
import { createHttpClients } from '../http/client.ts'
import { compareRegistry } from '../registry-check/compare.ts'
import { type Judged, judge, loadExplained } from '../registry-check/explained.ts'
import type { Lists } from '../registry-check/lists.ts'
import { fetchLists } from '../registry-check/provider-lists.ts'
import { readRecordedLists } from '../registry-check/recorded-lists.ts'
import { toTable } from '../terminal/text-table.ts'

const HELP = `npm run registry -- check [options]

Compares shared/registry with the lists of CoinGecko, CoinMarketCap (with a key), DefiLlama and Snapshot. Prints ids and
spaces that are unknown there, names, symbols, contracts and handles that differ, and tokens that are live after their end.
workers/registry-check/explained.json has the expected differences with their reasons. Exits with 3 if a difference is not in
it, with 2 if a list could not be read.

  --data       a folder of recorded lists, instead of the providers
  --explained  also prints the explained differences
  --json       prints all differences as JSON
  --help`

const EXIT_UNREAD = 2
const EXIT_UNEXPLAINED = 3

function print(judged: readonly Judged[], unread: Lists['unread'], withExplained: boolean): void {
  const open = judged.filter(({ reason }) => reason === null)
  const shown = withExplained ? judged : open
  const rows = shown.map(({ list, of, field, ours, theirs, reason }) => [
    ...[list, of, field, ours ?? '-', theirs ?? 'unknown there'],
    ...(withExplained ? [reason ?? ''] : []),
  ])
  const titles = ['list', 'of', 'field', 'ours', 'theirs', ...(withExplained ? ['reason'] : [])]
  if (rows.length > 0) console.log(toTable(titles, rows))
  for (const { list, reason } of unread) console.log(`${list}: not compared: ${reason}`)
  console.log(`${open.length} unexplained, ${judged.length - open.length} explained`)
}

async function main(): Promise<void> {
  const { values, positionals } = readCommandLine({
    allowPositionals: true,
    options: {
      data: { type: 'string' },
      explained: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(HELP)
  if (positionals.join(' ') !== 'check') throw new DataError('payload', `check is needed\n\n${HELP}`)
  const registry = loadRegistry()
  const lists = values.data === undefined ? await fetchProviderLists(registry) : readRecordedLists(values.data)
  const judged = judge(compareRegistry(registry, lists, Date.now()), loadExplained())
  if (values.json) console.log(JSON.stringify({ differences: judged, unread: lists.unread }, null, 2))
  else print(judged, lists.unread, values.explained)
  if (lists.unread.some(({ isFailure }) => isFailure)) process.exitCode = EXIT_UNREAD
  if (judged.some(({ reason }) => reason === null)) process.exitCode = EXIT_UNEXPLAINED
}

async function fetchProviderLists(registry: ReturnType<typeof loadRegistry>): Promise<Lists> {
  const config = loadConfig()
  const http = createHttpClients({ log: createLog('registry', 'error'), proxy: config.proxy })
  return fetchLists(registry, { config, http }, new AbortController().signal)
}

if (isMain(import.meta.url)) runCommand(main)
