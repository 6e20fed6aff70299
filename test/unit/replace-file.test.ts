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

it('a file is made, and replaced by what is made of it', () => {
  const path = join(dir, 'file')
  replaceFile(path, () => 'a', options)
  replaceFile(path, () => `${readFileSync(path, 'utf8')}b`, options)
  expect([readFileSync(path, 'utf8'), readdirSync(dir)]).toEqual(['ab', ['file']])
})

it('of two changes at a time the second is refused, and the file stays as it was where making it fails', () => {
  const path = join(dir, 'file')
  writeFileSync(path, 'a')
  const make = () => {
    replaceFile(path, () => 'c', options)
    return 'b'
  }
  const refused = { code: 'config', message: expect.stringContaining('another change is under way') }
  expect(() => replaceFile(path, make, options)).toThrow(expect.objectContaining(refused))
  expect([readFileSync(path, 'utf8'), readdirSync(dir)]).toEqual(['a', ['file']])
})

it('what the disk refuses is told with its file, and nothing is left beside it', () => {
  const refused = expect.objectContaining({ code: 'config', message: expect.stringContaining('cannot be changed') })
  expect(() => replaceFile(join(dir, 'nowhere', 'file'), () => 'a', options)).toThrow(refused)
  // A folder that is not empty is replaced by no file.
  const taken = join(dir, 'taken')
  mkdirSync(join(taken, 'inside'), { recursive: true })
  expect(() => replaceFile(taken, () => 'a', options)).toThrow(refused)
  expect(readdirSync(dir)).toEqual(['taken'])
})
