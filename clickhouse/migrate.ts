import { runCommand } from '../shared/command.ts'
import { readCommandLine } from '../shared/command-line.ts'
import { type Config, loadCommandConfig } from '../shared/config/config.ts'
import { DataError } from '../shared/errors.ts'
import { isMain, onStopSignal } from '../shared/process.ts'
import { createDatabase, type Database } from '../shared/store/store.ts'
import { createLog, type Logger } from '../shared/telemetry/log.ts'
import { migrate } from './migrations.ts'
import { compareInForce, putInForce } from './registry.ts'
import { findDrift } from './schema/drift.ts'
import { loadReleased } from './schema/released.ts'
import { dropOldScratches, dropScratch, toScratchName } from './schema/scratch.ts'
import { readSchema } from './schema/stored.ts'

const HELP = `npm run migrate             upgrades the schema to the files and activates the registry of shared/registry, which running
                            processes load within seconds
npm run migrate -- --schema upgrades only the schema: the active registry stays, which older processes can still read
npm run migrate -- --check  compares both with the files and changes nothing; exits with 1 if they differ`

async function main(): Promise<void> {
  const { values } = readCommandLine({
    options: { check: { type: 'boolean' }, schema: { type: 'boolean' }, help: { type: 'boolean' } },
  })
  if (values.help) return console.log(HELP)
  if (values.check && values.schema) throw new DataError('payload', `use --check or --schema, not both\n\n${HELP}`)
  const config = loadCommandConfig().clickhouse
  const log = createLog('migrate', values.check ? 'warn' : 'info')
  const server = createDatabase(config, 'write', { database: 'default' })
  const db = createDatabase(config, 'write')
  if (values.check) await check(server, db, config, log)
  else {
    await migrate(server, db, config.database, log)
    if (!values.schema) await putInForce(db, log)
  }
  await Promise.all([server.close(), db.close()])
}

/** Exit code of an interrupted check: the result is unknown. */
const STOPPED = 130

async function check(server: Database, db: Database, config: Config['clickhouse'], log: Logger): Promise<void> {
  await readSchema(db, loadReleased())
  const stop = new AbortController()
  const comparing = compareSchema(server, db, config, log, stop.signal)
  onStopSignal(async () => {
    process.exitCode = STOPPED
    stop.abort()
    const [end] = await Promise.allSettled([comparing])
    if (end.status === 'rejected' && end.reason !== stop.signal.reason) throw end.reason
  })
  const differences = await comparing.catch((error: unknown) => {
    if (stop.signal.aborted) return []
    throw error
  })
  // The stop handler reports the result.
  if (stop.signal.aborted) return
  console.log(differences.length === 0 ? 'the schema matches the files' : differences.join('\n'))
  if (differences.length > 0) {
    process.exitCode = 1
    return
  }
  const registryDifferences = (await compareInForce(db)) ?? ['no registry was ever stored']
  console.log(
    registryDifferences.length === 0 ? 'the active registry matches the files' : toRegistryReport(registryDifferences),
  )
  if (registryDifferences.length > 0) process.exitCode = 1
}

/**
 * Compares the database's schema with that of the files, created in a scratch database, which is dropped in any case.
 * ClickHouse cannot drop a database during the creation of a table, so an interrupt waits for the running statement.
 */
async function compareSchema(
  server: Database,
  db: Database,
  config: Config['clickhouse'],
  log: Logger,
  signal: AbortSignal,
): Promise<readonly string[]> {
  await dropOldScratches(server, Date.now())
  const scratchName = toScratchName(Date.now())
  const scratch = createDatabase(config, 'write', { database: scratchName })
  try {
    await migrate(server, endingWith(signal, scratch), scratchName, log)
    return await findDrift(db, config.database, scratch, scratchName)
  } finally {
    await dropScratch(server, scratchName)
    await scratch.close()
  }
}

/** A database whose writes throw after the signal; a running statement completes. */
const endingWith = (signal: AbortSignal, db: Database): Database => ({
  ...db,
  command: async (statement) => {
    signal.throwIfAborted()
    await db.command(statement)
  },
  insert: async (rows) => {
    signal.throwIfAborted()
    await db.insert(rows)
  },
})

const toRegistryReport = (changes: readonly string[]): string =>
  ['the active registry differs from the files; npm run migrate activates that of the files:', ...changes].join('\n  ')

if (isMain(import.meta.url)) runCommand(main)
