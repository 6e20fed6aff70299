import { type OwnServerOptions, startOwnServer } from '../../clickhouse/server/own-server.ts'
import { announceReady, onStopSignal, runProgram } from '../../shared/process.ts'

/** The server with options that have no setting in the product, given as JSON on the command line. */
runProgram(async () => {
  const server = await startOwnServer(JSON.parse(String(process.argv[2])) as OwnServerOptions)
  let isStopping = false
  onStopSignal(() => {
    isStopping = true
    return server.close()
  })
  announceReady({ url: server.url })
  const reason = await server.ended
  if (!isStopping) throw new Error(`ClickHouse ended unexpectedly: ${reason ?? 'no reason given'}`)
})
