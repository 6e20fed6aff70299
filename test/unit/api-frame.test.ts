import { once } from 'node:events'
import { Readable } from 'node:stream'
import { buffer, text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { frame } from '../../api/formats/answer.ts'
import { FORMAT_NAMES, FORMATS, openFramed } from '../../api/formats/formats.ts'

/** The end of a response that failed midway, in ClickHouse 26.7 and in versions without exception tags. */
const MESSAGE = 'Code: 395. DB::Exception: boom: while executing it. (FUNCTION_THROW_IF_VALUE_IS_NON_ZERO)'
const FAILURE = `\r\n__exception__\r\nklhpmixuiwuvndio\r\n${MESSAGE} (version 26.7.2.1)\n268 klhpmixuiwuvndio\r\n__exception__\r\n`
const OLD_FAILURE = `${MESSAGE} (version 25.8.2.29 (official build))\n`

const around = { before: '{"data":', after: '}', holds: async () => true }
const { signal } = new AbortController()
const framed = (...chunks: string[]) =>
  text(Readable.from(frame(Readable.from(chunks.map((chunk) => Buffer.from(chunk))), around, signal)))

describe('frame', () => {
  it('preserves every byte for any split into chunks', async () => {
    const array = `[\n${Array.from({ length: 50 }, (_, i) => `{"n":${i}}`).join(',\n')}\n]\n`
    expect(await framed(array)).toBe(`{"data":${array}}`)
    expect(await framed(...array)).toBe(`{"data":${array}}`)
  })

  it('throws before the end if the data has changed', async () => {
    const chunks: Buffer[] = []
    const array = [Buffer.from(`[${'1,'.repeat(20_000)}`), Buffer.from(`${'1,'.repeat(20_000)}1]`)]
    const sent = frame(Readable.from(array), { ...around, holds: async () => false }, signal)
    const read = async () => {
      for await (const chunk of sent) chunks.push(chunk)
    }
    await expect(read()).rejects.toMatchObject({ code: 'storage' })
    expect(Buffer.concat(chunks).toString()).toMatch(/^\{"data":\[1,.*[^\]}]$/)
  })

  it('recognizes a complete table by its last bytes', async () => {
    const table = (ending: Buffer | null, ...chunks: string[]) =>
      text(
        Readable.from(frame(Readable.from(chunks.map((chunk) => Buffer.from(chunk))), { ...around, ending }, signal)),
      )
    const end = Buffer.from('PAR1')
    expect(await table(end, 'PAR1 and so on', ' PA', 'R1')).toBe('{"data":PAR1 and so on PAR1}')
    expect(await table(null)).toBe('{"data":}')
    await expect(table(end, 'PAR1 and so on')).rejects.toMatchObject({ code: 'storage' })
    await expect(table(end)).rejects.toMatchObject({ code: 'storage' })
    await expect(table(end, `PAR1 and so on${FAILURE}`)).rejects.toMatchObject({ code: 'storage' })
  })

  /** Texts that anyone may store as the name of a token or the title of a proposal. */
  const words = ['__exception__', 'DB::Exception', FAILURE, 'Code: 1. DB::Exception: x (version 26.7.2.1)\n']

  it.each(FORMAT_NAMES)('distinguishes stored texts from failures of the engine in %s', async (format) => {
    const { ending } = FORMATS[format]
    const send = (...chunks: Buffer[]) =>
      buffer(Readable.from(frame(Readable.from(chunks), { ...around, ending }, signal)))
    for (const one of words) {
      const quoted = JSON.stringify(one)
      // CSV does not escape line ends.
      const started = {
        json: `[{"a":${quoted}}`,
        csv: `"a"\n"${one}"`,
        ndjson: `{"a":${quoted}}`,
        parquet: one,
        arrow: one,
      }[format]
      const full = Buffer.concat([Buffer.from(started), ending])
      expect(await send(full)).toEqual(Buffer.concat([Buffer.from(around.before), full, Buffer.from(around.after)]))
      for (const failure of [FAILURE, OLD_FAILURE]) {
        const broken = [full, Buffer.from(failure.slice(0, -9)), Buffer.from(failure.slice(-9))]
        await expect(send(...broken)).rejects.toMatchObject({ code: 'storage' })
      }
    }
  })

  it('handles a source that fails after its client disconnected', async () => {
    const disconnected = new AbortController()
    const source = Readable.from(
      (async function* () {
        await once(disconnected.signal, 'abort')
        await new Promise((resolve) => setImmediate(resolve))
        yield Promise.reject(new Error('broken off'))
      })(),
    )
    const opening = openFramed({ ...around, digest: '', open: async () => source } as never, disconnected.signal)
    await new Promise((resolve) => setImmediate(resolve))
    disconnected.abort()
    await expect(opening).rejects.toMatchObject({ code: 'storage' })
    await new Promise((resolve) => source.once('close', resolve))
    expect(source.errored).toMatchObject({ message: 'broken off' })
  })

  it.each([
    ['an incomplete array', ['[\n{"n":1},\n', '{"n":2}']],
    ['an empty stream', []],
  ])('throws for %s', async (_, chunks) => {
    await expect(framed(...chunks)).rejects.toMatchObject({ code: 'storage' })
  })
})
