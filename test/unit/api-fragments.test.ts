import { Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { createFragments, type Fragment } from '../../api/answers/fragments.ts'
import { createRowCutter, readRows } from '../../api/answers/json-rows.ts'
import { createHandFeed } from '../support/api.ts'

const fragment = (text: string): Fragment => ({ bytes: Buffer.from(text), points: 1, asOf: 1, digest: text })

function setUp(maxBytes = 100_000) {
  const commits = createHandFeed()
  const fragments = createFragments({ maxBytes, commits })
  const keep = (key: string, from: number, to: number, mark = fragments.mark()) =>
    fragments.keep(key, 'prices', { from, to }, mark, fragment(key))
  return { commits, fragments, keep }
}

describe('fragments', () => {
  it('are dropped by a commit about their times and by no other', () => {
    const { commits, fragments, keep } = setUp()
    keep('a', 0, 10)
    keep('b', 10, 20)
    keep('c', 20, 30)
    commits.commit('holders', { from: 0, to: 30 })
    commits.commit('prices', { from: 10, to: 19 })
    expect([fragments.get('a')?.digest, fragments.get('b'), fragments.get('c')?.digest]).toEqual(['a', undefined, 'c'])
    commits.commit('prices', { from: 20, to: 20 })
    expect(fragments.get('c')).toBeUndefined()
    commits.commit('prices')
    expect(fragments.get('a')).toBeUndefined()
  })

  it('are not kept when their data may have changed while it was read', () => {
    const { commits, fragments, keep } = setUp()
    const mark = fragments.mark()
    commits.commit('prices', { from: 15, to: 15 })
    keep('a', 0, 10, mark)
    keep('b', 10, 20, mark)
    expect(fragments.get('a')).toBeDefined()
    expect(fragments.get('b')).toBeUndefined()
    const old = fragments.mark()
    for (let change = 0; change < 1000; change++) commits.commit('holders')
    keep('c', 20, 30, old)
    expect(fragments.get('c')).toBeUndefined()
    keep('c', 20, 30)
    expect(fragments.get('c')).toBeDefined()
  })

  it('do not outlive what may have been missed', () => {
    const { commits, fragments, keep } = setUp()
    keep('a', 0, 10)
    commits.away(true)
    expect(fragments.get('a')).toBeUndefined()
    keep('a', 0, 10)
    expect(fragments.get('a')).toBeUndefined()
  })

  it('stay within their bytes', () => {
    const { fragments, keep } = setUp(2000)
    for (const key of ['a', 'b', 'c', 'd']) keep(key, 0, 10)
    expect(fragments.get('a')).toBeUndefined()
    expect(fragments.get('d')).toBeDefined()
    const collecting = new AbortController()
    expect([1001, 600, 401].map((bytes) => fragments.claim(bytes, collecting.signal))).toEqual([false, true, false])
    collecting.abort()
    expect(fragments.claim(1000, collecting.signal)).toBe(false)
    expect(fragments.claim(1000, new AbortController().signal)).toBe(true)
    const none = setUp(0)
    none.keep('a', 0, 10)
    expect(none.fragments.get('a')).toBeUndefined()
  })
})

describe('the rows of an array', () => {
  const rows = Array.from({ length: 20 }, (_, n) => `{"n":${n}}`)
  const array = `[\n${rows.join(',\n')}\n]\n`
  const inChunks = (size: number) =>
    Readable.from(array.match(new RegExp(`[^]{1,${size}}`, 'g'))?.map((text) => Buffer.from(text)) ?? [])

  it.each([1, 2, 3, 7, 50, 1000])('are cut into stretches, however the chunks fall (%d bytes)', async (size) => {
    const cutter = createRowCutter([3, 1, 10, 6])
    const passed: Buffer[] = []
    for await (const bytes of readRows(inChunks(size))) {
      cutter.push(bytes)
      passed.push(bytes)
    }
    expect(Buffer.concat(passed).toString()).toBe(rows.join(',\n'))
    const stretches = cutter.end().map(String)
    expect(stretches).toEqual(
      [rows.slice(0, 3), [rows[3]], rows.slice(4, 14), rows.slice(14)].map((s) => s.join(',\n')),
    )
  })

  it.each(['', '[', '[\n{"n":1}', '[\n{"n":1},\n', '{"n":1}\n', '[\n{"n":1}\n]'])('are refused of %j', async (text) => {
    const read = async () => {
      const passed: Buffer[] = []
      for await (const bytes of readRows(Readable.from([Buffer.from(text)]))) passed.push(bytes)
      return passed
    }
    await expect(read()).rejects.toMatchObject({ code: 'storage' })
  })
})
