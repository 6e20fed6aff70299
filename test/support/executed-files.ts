import { Session } from 'node:inspector/promises'
import { join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = join(import.meta.dirname, '../..')
const OWN_FOLDERS: ReadonlySet<string> = new Set(['api', 'clickhouse', 'shared', 'tools', 'workers'])

/**
 * The getter that Vite adds for each export, also of another file. The getter runs when another module reads the
 * export.
 */
const EXPORT_GETTER = /^\(\)\s*=>\s*\{\s*try\s*\{\s*return\s+[\w$.]+;?\s*\}\s*catch\s*\{\s*\}\s*\}$/

/**
 * Returns the own source files of which a function was called during `work`, as sorted paths relative to the repository.
 * Modules must be loaded before: the evaluation of a module counts like a call. Tests and packages do not count. A file
 * that was compiled into `.data/compiled` counts as its source.
 */
export async function countExecuted(work: () => Promise<unknown>): Promise<string[]> {
  const session = new Session()
  session.connect()
  try {
    await session.post('Debugger.enable')
    await session.post('Profiler.enable')
    await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
    await work()
    const { result } = await session.post('Profiler.takePreciseCoverage')
    await session.post('Profiler.stopPreciseCoverage')
    const files = new Set<string>()
    for (const { scriptId, url, functions } of result) {
      const file = toSource(url)
      if (file === undefined || files.has(file)) continue
      const called = functions.flatMap(({ ranges: [full] }) => (full !== undefined && full.count > 0 ? [full] : []))
      if (called.length === 0) continue
      const { scriptSource } = await session.post('Debugger.getScriptSource', { scriptId })
      if (called.some(({ startOffset, endOffset }) => !EXPORT_GETTER.test(scriptSource.slice(startOffset, endOffset))))
        files.add(file)
    }
    return [...files].sort()
  } finally {
    session.disconnect()
  }
}

/** Returns the source of a script of this repository, or undefined for any other script. */
function toSource(url: string): string | undefined {
  const path = url.startsWith('file://') ? fileURLToPath(url) : url
  const parts = relative(ROOT, path).split(sep)
  const inside = parts[0] === '.data' && parts[1] === 'compiled' ? parts.slice(3) : parts
  if (!OWN_FOLDERS.has(inside[0] ?? '')) return undefined
  return inside.join('/').replace(/\.js$/, '.ts')
}
