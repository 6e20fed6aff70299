import { pino } from 'pino'
import { startApi } from '../../api/main.ts'
import { loadConfig } from '../../shared/config/config.ts'
import { announceReady, onStopSignal, runProgram } from '../../shared/process.ts'

/**
 * Runs the API with another minimum read rate than its default of half a minute: `paced-api.ts <bytes> <milliseconds>`. Sends
 * its log to the parent process.
 */
async function main(): Promise<void> {
  const [bytes, ms] = process.argv.slice(2).map(Number)
  const log = pino({ level: 'info' }, { write: (line: string) => void process.send?.({ line }) })
  const { stop, facts } = await startApi(loadConfig(), log, { minimumRate: { bytes: Number(bytes), ms: Number(ms) } })
  onStopSignal(stop)
  announceReady({ ...facts })
}

runProgram(main)
