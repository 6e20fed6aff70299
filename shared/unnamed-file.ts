import { randomUUID } from 'node:crypto'
import { type FileHandle, open, unlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Opens a file without a name: it disappears with the process, however the process ends. */
export async function openUnnamed(): Promise<FileHandle> {
  const path = join(tmpdir(), `dao-data-${randomUUID()}`)
  const file = await open(path, 'wx+', 0o600)
  try {
    await unlink(path)
    return file
  } catch (error) {
    await file.close()
    throw error
  }
}

/** Writes all bytes at an offset of a file. */
export async function writeAt(file: FileHandle, bytes: Buffer, place: number): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    at += (await file.write(bytes, at, bytes.length - at, place + at)).bytesWritten
  }
}
