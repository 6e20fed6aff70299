import { loadConfig } from '../shared/config/config.ts'
import { createPassword, readClickHouseAccess } from '../shared/config/own-stores.ts'
import { DataError } from '../shared/errors.ts'
import { announceReady, onStopSignal, runPart } from '../shared/process.ts'
import { startOwnServer } from './server/own-server.ts'

/**
 * ClickHouse's own server over a data folder. Its users always have passwords: those of the settings, or those
 * generated at the folder's first start.
 */
async function main(): Promise<void> {
  const { user, password, readUser, readPassword, database, own } = loadConfig().clickhouse
  const stored = readClickHouseAccess(own.dataDir)
  const server = await startOwnServer({
    ...own,
    users: {
      writer: { name: user, password: password || stored?.writer.password || createPassword() },
      reader: { name: readUser, password: readPassword || stored?.reader.password || createPassword() },
    },
    readable: `${database}.*`,
  })
  let isStopping = false
  onStopSignal(() => {
    isStopping = true
    return server.close()
  })
  announceReady({ url: server.url, tcpPort: own.tcpPort })
  const reason = await server.ended
  if (!isStopping)
    throw new DataError('storage', `ClickHouse over ${own.dataDir} ended unexpectedly: ${reason ?? 'no reason given'}`)
}

runPart("npm run clickhouse: ClickHouse's own server, one per data folder.", main)
