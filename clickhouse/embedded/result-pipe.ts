import { execFile } from 'node:child_process'
import { closeSync, constants, openSync } from 'node:fs'
import { Socket } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'

/**
 * Named pipes through which the engine writes results (`INTO OUTFILE`) and Node reads them.
 *
 * Why not the engine's own result stream: that formats every chunk by itself, so JSON, Parquet, Arrow, CSV with names
 * and `output_format_json_array_of_rows` come out broken, and starting it runs scalar subqueries on Node's main
 * thread. A pipe carries any format whole, lets the engine compress, and a full pipe is back-pressure.
 *
 * Returns one path for each slot; at most one statement may use a path at a time. The `mkfifo` command is part of every
 * POSIX system.
 */
export async function createResultPipes(folder: string, count: number): Promise<readonly string[]> {
  const paths = Array.from({ length: count }, (_, slot) => join(folder, `result-${slot}`))
  await promisify(execFile)('mkfifo', ['-m', '600', ...paths])
  return paths
}

/** Opens a pipe's reading end; it must be open before the engine opens the other one, which would wait for it. */
export function openReader(path: string): Socket {
  return new Socket({
    fd: openSync(path, constants.O_RDONLY | constants.O_NONBLOCK),
    readable: true,
    writable: false,
  })
}

/** Makes the reader see the end even if the engine never opened the pipe. */
export function endPipe(path: string): void {
  try {
    closeSync(openSync(path, constants.O_WRONLY | constants.O_NONBLOCK))
  } catch (error) {
    // ENXIO: no reader is left, so nobody waits for an end.
    if (!(error instanceof Error && 'code' in error && error.code === 'ENXIO')) throw error
  }
}
