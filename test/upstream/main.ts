import { readCommandLine } from '../../shared/command-line.ts'
import { onStopSignal } from '../../shared/process.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { createUpstream } from './server.ts'

/**
 * Runs the stand-in: `tsx test/upstream/main.ts [--port 0] [--host 127.0.0.1] [--seed N] [--data DIR]`. `--data`
 * defaults to UPSTREAM_DATA_DIR. Prints one JSON line `{"url", "port"}` once it listens; ends on SIGTERM or SIGINT.
 */
const { values } = readCommandLine({
  options: {
    port: { type: 'string', default: '0' },
    host: { type: 'string', default: '127.0.0.1' },
    seed: { type: 'string', default: '1' },
    data: { type: 'string' },
  },
})

const upstream = await createUpstream({
  registry: loadRegistry(),
  port: parseInteger('port', values.port),
  host: values.host,
  seed: parseInteger('seed', values.seed),
  dataDir: values.data ?? (process.env.UPSTREAM_DATA_DIR || null),
})
process.stdout.write(`${JSON.stringify({ url: upstream.url, port: upstream.port })}\n`)

onStopSignal(() => upstream.close())

function parseInteger(flag: string, text: string): number {
  if (!/^\d+$/.test(text)) throw new Error(`--${flag} must be a whole number, not "${text}"`)
  return Number(text)
}
