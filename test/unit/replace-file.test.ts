import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { replaceFile } from '../../shared/replace-file.ts'

let dir: string
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'dao-data-replace-'))
})
afterEach(() => rmSync(dir, { recursive: true, force: true }))

const options = { code: 'config' } as const

it('replaceFile creates a file, and replaces it with content derived from it', () => {
  const path = join(dir, 'file')
  replaceFile(path, () => 'a', options)
  replaceFile(path, () => `${readFileSync(path, 'utf8')}b`, options)
  expect([readFileSync(path, 'utf8'), readdirSync(dir)]).toEqual(['ab', ['file']])
})

it('replaceFile rejects a concurrent change, and keeps the file if its content cannot be built', () => {
  const path = join(dir, 'file')
  writeFileSync(path, 'a')
  const make = () => {
    replaceFile(path, () => 'c', options)
    return 'b'
  }
  const refused = { code: 'config', message: expect.stringContaining('another process is changing the file') }
  expect(() => replaceFile(path, make, options)).toThrow(expect.objectContaining(refused))
  expect([readFileSync(path, 'utf8'), readdirSync(dir)]).toEqual(['a', ['file']])
})

it('replaceFile reports disk errors with the path and leaves no temporary file', () => {
  const refused = expect.objectContaining({ code: 'config', message: expect.stringContaining('cannot be written') })
  expect(() => replaceFile(join(dir, 'nowhere', 'file'), () => 'a', options)).toThrow(refused)
  // A file cannot replace a non-empty folder.
  const taken = join(dir, 'taken')
  mkdirSync(join(taken, 'inside'), { recursive: true })
  expect(() => replaceFile(taken, () => 'a', options)).toThrow(refused)
  expect(readdirSync(dir)).toEqual(['taken'])
})
