import { type OwnServerOptions, startOwnServer } from '../../clickhouse/server/own-server.ts'
import { announceReady, onStopSignal, runProgram } from '../../shared/process.ts'

/** The server with options that the product's settings do not have; they stand on the command line as JSON. */
runProgram(async () => {
  const server = await startOwnServer(JSON.parse(String(process.argv[2])) as OwnServerOptions)
  onStopSignal(() => server.close())
  announceReady({ url: server.url })
})
