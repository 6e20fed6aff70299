import { buffer } from 'node:stream/consumers'
import zlib, { gunzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import {
  chooseEncoding,
  createEncoder,
  createMediaTypeChooser,
  encode,
  matchesTag,
  toEntityTag,
  toTagValue,
} from '../../api/http/negotiation.ts'

describe('entity tags', () => {
  it('are strong and differ by bytes and encoding', () => {
    const value = toTagValue(Buffer.from('[1]'))
    expect(value).not.toBe(toTagValue(Buffer.from('[2]')))
    expect(toEntityTag(value, 'identity')).toBe(`"${value}"`)
    expect(toEntityTag(value, 'gzip')).toBe(`"${value}-gzip"`)
  })

  it.each(['"v"', 'W/"v"', '"v-gzip"', 'W/"v-br"', '"v-zstd"', '"other", "v"', '*', ' * '])(
    'match If-None-Match %s',
    (header) => {
      expect(matchesTag(header, 'v')).toBe(true)
    },
  )

  it.each([undefined, '', '"other"', 'v', '"v-deflate"', '"vv"'])('do not match If-None-Match %s', (header) => {
    expect(matchesTag(header, 'v')).toBe(false)
  })
})

/** Node has Zstandard from 22.15 on. */
const hasZstandard = 'zstdCompress' in zlib

describe('chooseEncoding', () => {
  it.each([
    [undefined, 'identity'],
    ['', 'identity'],
    ['gzip', 'gzip'],
    ['br', 'br'],
    ['gzip, deflate, br', 'gzip'],
    ['gzip;q=0.5, br', 'br'],
    ['gzip;q=0', 'identity'],
    ['zstd', hasZstandard ? 'zstd' : 'identity'],
    ['gzip, deflate, br, zstd', 'gzip'],
    ['gzip;q=0.5, br, zstd', hasZstandard ? 'zstd' : 'br'],
    ['*;q=0.5, gzip;q=0', hasZstandard ? 'zstd' : 'br'],
    ['*', 'gzip'],
    ['deflate', 'identity'],
    ['identity, gzip;q=0.5', 'identity'],
    [`gzip${','.repeat(2_000)}`, 'identity'],
  ])('maps Accept-Encoding %s to %s', (header, encoding) => {
    expect(chooseEncoding(header)).toBe(encoding)
  })

  it('encode() preserves the bytes', async () => {
    const body = Buffer.from('x'.repeat(1000))
    expect(gunzipSync(await encode(body, 'gzip'))).toEqual(body)
    expect(await encode(body, 'identity')).toBe(body)
  })

  it.skipIf(!hasZstandard)('encode() preserves the bytes in Zstandard', async () => {
    const body = Buffer.from('x'.repeat(1000))
    const { zstdDecompressSync } = zlib as unknown as { zstdDecompressSync(bytes: Buffer): Buffer }
    expect(zstdDecompressSync(await encode(body, 'zstd'))).toEqual(body)
    const stream = createEncoder('zstd', 1024)
    stream.end(body)
    expect(zstdDecompressSync(await buffer(stream))).toEqual(body)
  })
})

describe('createMediaTypeChooser', () => {
  it.each([
    undefined,
    '',
    '*/*',
    'application/json',
    'application/*',
    'text/html, */*;q=0.1',
    'APPLICATION/JSON',
    `text/html${','.repeat(2_000)}`,
  ])('accepts JSON for Accept %s', (header) => {
    expect(createMediaTypeChooser(['application/json'])(header)).toBe('application/json')
  })

  it.each(['text/html', 'application/xml', 'application/json;q=0', 'application/json;q=0, */*', 'image/*'])(
    'rejects JSON for Accept %s',
    (header) => {
      expect(createMediaTypeChooser(['application/json'])(header)).toBeUndefined()
    },
  )
})
