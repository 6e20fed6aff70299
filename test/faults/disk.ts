import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A small separate disk, mounted under a folder. */
export interface Disk {
  readonly dir: string
  /** Makes writes fail from now on; reads still work. */
  fail(): void
  /** Repairs the disk, if possible. */
  mend?(): void
  remove(): void
}

const run = (command: string, ...args: string[]) => execFileSync(command, args, { stdio: 'pipe' })

function createFolder(): string {
  return mkdtempSync(join(tmpdir(), 'dao-data-disk-'))
}

/** A disk that gets full; undefined if this process may not mount one. */
export function createFullDisk(): Disk | undefined {
  const dir = createFolder()
  try {
    run('mount', '-t', 'tmpfs', '-o', 'size=128m', 'tmpfs', dir)
  } catch (error) {
    rmSync(dir, { recursive: true })
    return ignoreMissing(error)
  }
  const filler = join(dir, 'filler')
  return {
    dir,
    fail: () => {
      try {
        run('dd', 'if=/dev/zero', `of=${filler}`, 'bs=4096')
      } catch {
        // The failed write fills the disk on purpose.
      }
    },
    mend: () => rmSync(filler),
    remove: () => unmount(dir),
  }
}

/**
 * A disk that the kernel makes read-only while it is in use, as after a hardware fault; undefined if this process may not mount
 * one or the kernel does not support it.
 */
export function createReadOnlyDisk(): Disk | undefined {
  const base = createFolder()
  const [image, dir] = [join(base, 'image'), join(base, 'disk')]
  let order: string
  try {
    run('truncate', '-s', '256M', image)
    run('mkfs.ext4', '-q', image)
    mkdirSync(dir)
    run('mount', '-o', 'loop,errors=remount-ro', image, dir)
    const device = run('findmnt', '-n', '-o', 'SOURCE', dir).toString().trim().replace('/dev/', '')
    order = join('/sys/fs/ext4', device, 'trigger_fs_error')
    readdirSync(join('/sys/fs/ext4', device))
  } catch (error) {
    rmSync(base, { recursive: true, force: true })
    return ignoreMissing(error)
  }
  return {
    dir,
    fail: () => writeFileSync(order, 'test'),
    remove: () => {
      unmount(dir)
      rmSync(base, { recursive: true, force: true })
    },
  }
}

function unmount(dir: string): void {
  run('umount', '-l', dir)
  rmSync(dir, { recursive: true, force: true })
}

function ignoreMissing(error: unknown): undefined {
  console.log(`skipped: no disk to break here: ${error instanceof Error ? error.message : error}`)
  return undefined
}
