import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { findDiskFault } from '../../tools/supervisor.ts'

vi.mock('node:fs', async (original) => {
  const fs = await original<typeof import('node:fs')>()
  return { ...fs, writeFileSync: vi.fn(fs.writeFileSync) }
})

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'dao-data-disk-fault-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

describe('findDiskFault', () => {
  it('returns undefined for a writable folder and leaves no files', () => {
    expect(findDiskFault(folder)).toBeUndefined()
    expect(readdirSync(folder)).toEqual([])
  })

  it.each([
    ['ENOSPC', 'is full'],
    ['EDQUOT', 'is full for this user (a quota)'],
    ['EROFS', 'is read-only'],
  ])('names the fault of a disk that fails with %s', (code, words) => {
    vi.mocked(writeFileSync).mockImplementationOnce(() => {
      throw Object.assign(new Error(code), { code })
    })
    expect(findDiskFault(folder)).toBe(`the disk of ${folder} ${words}`)
  })

  it('ignores other errors', () => {
    expect(findDiskFault(join(folder, 'gone'))).toBeUndefined()
  })
})
