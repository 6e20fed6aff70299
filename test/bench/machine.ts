import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { arch, cpus, platform, totalmem } from 'node:os'

/** The environment of the figures in one line: processor, memory, Node, engine, date. */
export function describeMachine(now: Date): string {
  const processors = cpus()
  const model = processors[0]?.model.trim() || 'processor of unknown model'
  const gigabytes = (totalmem() / 1024 ** 3).toFixed(0)
  return [
    `${processors.length} x ${model}`,
    `${gigabytes} GB of memory`,
    `${platform()} ${arch()}`,
    `Node ${process.versions.node}`,
    readEngine(),
    now.toISOString().slice(0, 10),
  ].join(', ')
}

/** Queries the engine in a separate process, because the library stays in memory. */
function readEngine(): string {
  const require = createRequire(import.meta.url)
  const { version } = JSON.parse(readFileSync(require.resolve('chdb/package.json'), 'utf8'))
  const target = "process.stdout.write(require('chdb').query('SELECT version()', 'TSVRaw'))"
  const engine = execFileSync(process.execPath, ['-e', target], { encoding: 'utf8', cwd: import.meta.dirname })
  return `ClickHouse ${engine.trim()} (chdb ${version})`
}
