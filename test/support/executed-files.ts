import { Session } from 'node:inspector/promises'
import { join, relative } from 'node:path'

const ROOT = join(import.meta.dirname, '../..')

export async function countExecuted(work: () => Promise<unknown>): Promise<string[]> {
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  await session.post('Profiler.takePreciseCoverage')
  await work()
  const { result } = await session.post('Profiler.takePreciseCoverage')
  await session.post('Profiler.stopPreciseCoverage')
  session.disconnect()
  const found = new Set<string>()
  for (const { url, functions } of result) {
    const path = relative(ROOT, url.replace(/^file:\/\//, '').split('?')[0] as string)
    if (path.startsWith('..') || path.startsWith('node_modules') || path === '' || path.startsWith('node:')) continue
    if (functions.some(({ functionName, ranges }) => (ranges[0]?.count ?? 0) > 0 && functionName !== ''))
      found.add(path)
  }
  return [...found].sort()
}
