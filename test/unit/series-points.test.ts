import { execFile, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { promisify } from 'node:util'
import { crc32, gunzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { combineCrc } from '../../api/formats/deflated.ts'
import { type Part, type Rows, toRows, toSlice, toText, writeGzip } from '../../api/formats/formats.ts'
import { type PointsChunk, type PointsForm, packPoints, toPoints } from '../../api/series/points.ts'
import {
  INTERVAL_SECONDS,
  INTERVALS,
  type Interval,
  MONDAY_SHIFT_MS,
  type TimeRange,
  toBucketStart,
} from '../../shared/intervals.ts'
import { countCases } from '../support/cases.ts'
import { toNoiseKey, unit } from '../upstream/noise.ts'

interface Point {
  readonly at: number
  readonly observed: number
  readonly json: string
}

const KEY = toNoiseKey(1, 'price chunks')
const START = Date.parse('2024-01-01T00:00:00Z')

/** Points of `buckets` buckets with gaps; every value has all its digits. */
function toSeries(interval: Interval, buckets: number, share = 0.8): Point[] {
  const step = INTERVAL_SECONDS[interval] * 1000
  const first = toBucketStart(START, interval)
  return Array.from({ length: buckets }, (_, index) => index)
    .filter((index) => unit(KEY, index) < share)
    .map((index) => {
      const at = first + index * step
      // Providers observe a complete series at full minutes.
      const observed = share === 1 ? at : at + Math.floor(unit(KEY, 1e6 + index) * (step - 1))
      const price = 0.37 + Math.sin(index / 50) / 10 + unit(KEY, 2e6 + index) / 1000
      const values = `"price":${price},"volume_24h":${price * 1e8 + index},"market_cap":${price * 1155057402}`
      const supplies = '"total_supply":1500000000,"circulating_supply":1155057402'
      const [bucket, time] = [at, observed].map((ms) => new Date(ms).toISOString())
      return {
        ...{ at, observed },
        json: `{"timestamp":"${bucket}","quote":{"USD":{${values},${supplies},"timestamp":"${time}"}}}`,
      }
    })
}

function rowsOf(points: readonly Point[]): Rows {
  const starts = [0]
  for (const { json } of points) starts.push((starts.at(-1) ?? 0) + json.length + 1)
  return toRows(
    Buffer.from(points.map(({ json }) => json).join()),
    Uint32Array.from(starts),
    Float64Array.from(points.map(({ at }) => at)),
    Float64Array.from(points.map(({ observed }) => observed)),
  )
}

/** Reads the time of the observation from the end of a point. */
const readAsOf = (text: Buffer, end: number) => Date.parse(text.toString('latin1', end - 28, end - 4))

/** The chunks of a series, of 288 buckets each. */
async function pack(points: readonly Point[], form: PointsForm): Promise<PointsChunk[]> {
  const length = 288 * INTERVAL_SECONDS[form.interval] * 1000
  const rows = rowsOf(points)
  const chunks: PointsChunk[] = []
  for (
    let from = Math.floor((START - MONDAY_SHIFT_MS) / length) * length + MONDAY_SHIFT_MS;
    from <= (points.at(-1)?.at ?? 0);
    from += length
  )
    chunks.push(await packPoints(toSlice(rows, { from, to: from + length }), form))
  return chunks
}

const FRAME = { before: '{"name":"Ünïcode","data":', after: '}' }
const SHORT: PointsForm = { interval: '5m', order: 'asc', hasLines: false, firstMember: 'timestamp', readAsOf }
/** Observations are read from the text or from the chunk. */
const FORMS: readonly Omit<PointsForm, 'interval'>[] = (['asc', 'desc'] as const).flatMap((order) =>
  [false, true].flatMap((hasLines) => [
    { order, hasLines, firstMember: 'timestamp' },
    { order, hasLines, firstMember: 'timestamp', readAsOf },
  ]),
)
function textOf(points: readonly Point[], hasLines: boolean): string {
  const all = points.map(({ json }) => json)
  return `${FRAME.before}${hasLines ? `[\n${all.join(',\n')}\n]\n` : `[${all.join()}]`}${FRAME.after}`
}

describe('combineCrc', () => {
  it('returns the CRC-32 of two texts from those of each', () => {
    for (const [one, other] of [
      [0, 0],
      [0, 9],
      [9, 0],
      [1, 1],
      [5, 70_001],
      [100_003, 3],
    ] as const) {
      const [beginning, rest] = [Buffer.alloc(one, 'abc'), Buffer.alloc(other, 'zyxw')]
      expect(combineCrc(crc32(beginning), crc32(rest), other)).toBe(crc32(Buffer.concat([beginning, rest])))
    }
  })
})

describe('toPoints', () => {
  const random = (turn: number, range: TimeRange, step: number): TimeRange => {
    const [one, other] = [0, 1].map(
      (n) => range.from + Math.floor(unit(KEY, 3e6 + 2 * turn + n) ** 2 * (range.to - range.from)),
    )
    // Ranges of the API begin and end on the grid of the interval.
    const [from = 0, to = 0] = [one, other]
      .map((at) => range.from + Math.round(((at ?? 0) - range.from) / step) * step)
      .sort((a, b) => a - b)
    return { from, to }
  }

  it.each(INTERVALS)('gives exactly the points of any range, in text and in gzip (%s)', async (interval) => {
    const step = INTERVAL_SECONDS[interval] * 1000
    const series = toSeries(interval, 1000)
    const chunksOf = await Promise.all(FORMS.map((form) => pack(series, { ...form, interval })))
    const all = { from: toBucketStart(START, interval) - 5 * step, to: (series.at(-1)?.at ?? 0) + 5 * step }
    for (let turn = 0; turn < 80; turn++) {
      const range = turn < FORMS.length ? all : random(turn, all, step)
      const form = { ...(FORMS[turn % FORMS.length] as PointsForm), interval }
      const { hasLines, order } = form
      const oldestFirst = series.filter(({ at }) => at >= range.from && at < range.to)
      const wanted = order === 'asc' ? oldestFirst : oldestFirst.reverse()
      const points = toPoints(chunksOf[turn % FORMS.length] ?? [], range, form)
      const most = Math.floor(unit(KEY, 4e6 + turn) * (wanted.length + 2))
      for (const [given, part] of [
        [points, wanted],
        [points.head(most), wanted.slice(0, most)],
      ] as const) {
        const body = given.toBody(FRAME)
        expect(given.count).toBe(part.length)
        const sorted = [...part].sort((a, b) => a.at - b.at)
        expect(given.asOf).toBe(sorted.at(-1)?.observed ?? null)
        expect([given.earliest, given.latest]).toEqual([sorted[0]?.at ?? 0, sorted.at(-1)?.at ?? 0])
        const since = range.from + 7 * step
        expect(given.countSince(since)).toBe(part.filter(({ at }) => at >= since).length)
        const observed = { from: since + step / 3, to: range.to - step / 3 }
        const inside = sorted.map((one) => one.observed).filter((at) => at >= observed.from && at < observed.to)
        expect(given.readAsOf(observed)).toEqual(inside)
        expect(body.toText().toString()).toBe(textOf(part, hasLines))
        expect(body.length).toBe(Buffer.byteLength(textOf(part, hasLines)))
        for (const isCached of [true, false]) expect(gunzipSync(body.toGzip(isCached)).equals(body.toText())).toBe(true)
        expect(Buffer.concat([...body.write('identity')]).equals(body.toText())).toBe(true)
        expect(Buffer.concat([...body.write('gzip')]).equals(body.toGzip(false))).toBe(true)
      }
    }
  })

  it('gives equal tags for equal points, also after points were added behind them, and other tags for others', async () => {
    const series = toSeries('5m', 288)
    const range = { from: START + 3_000_000, to: START + 40_000_000 }
    const tagOf = async (points: readonly Point[], frame = FRAME) =>
      toPoints(await pack(points, SHORT), range, SHORT).toBody(frame).tag
    const tag = await tagOf(series)
    expect(await tagOf(series.filter(({ at }) => at < range.to))).toBe(tag)
    expect(await tagOf(series, { ...FRAME, after: '}\n' })).not.toBe(tag)
    for (const changed of series.filter(({ at }) => at >= range.from && at < range.to).filter((_, n) => n % 20 === 0)) {
      const other = series.map((one) =>
        one === changed ? { ...one, json: one.json.replace('"price":0', '"price":1') } : one,
      )
      expect(await tagOf(other)).not.toBe(tag)
    }
  })

  it('takes at most 40 bytes of memory per point of a complete day with all digits', async () => {
    const chunks = await pack(toSeries('5m', 2880, 1), SHORT)
    expect(chunks.reduce((sum, { size }) => sum + size, 0) / 2880).toBeLessThan(40)
  })
})

const exists = (program: string) => spawnSync(program, ['--version']).status === 0

describe('gzip that is assembled from deflated parts', () => {
  /** A whole block, texts between blocks, a text that is deflated, and one that is longer than a stored block. */
  const build = async () => {
    const [chunk] = await pack(toSeries('5m', 288), SHORT)
    const body = toPoints([chunk as PointsChunk], { from: START + 600_000, to: START + 80_000_000 }, SHORT).toBody(
      FRAME,
    )
    return { text: body.toText(), gzip: body.toGzip(false), cached: body.toGzip(true) }
  }

  it('stores the parts of blocks at the edges of a range, and deflates longer texts', async () => {
    const { text, gzip, cached } = await build()
    expect(gzip.includes(text.subarray(0, 2000))).toBe(true)
    expect(gzip.includes(text.subarray(-2000))).toBe(true)
    // A cached answer has nothing of them as text; the blocks between the edges stay deflated in both.
    expect(cached.includes(text.subarray(600, 1200))).toBe(false)
    expect(cached.length).toBeLessThan(gzip.length)
    expect(gzip.length).toBeLessThan(text.length / 2)
    const long = text.subarray(0, 20_000)
    expect(Buffer.concat([...writeGzip([long])]).length).toBeLessThan(long.length / 4)
  })

  it.skipIf(!exists('gunzip'))('passes the integrity check of gunzip for any range', async () => {
    const chunks = await pack(toSeries('5m', 600, 1), SHORT)
    for (let turn = 0; turn < countCases(20); turn++) {
      const [from, points] = [0, 1].map((n) => Math.floor(unit(KEY, 5e6 + 2 * turn + n) * 400)) as [number, number]
      const range = { from: START + from * 300_000, to: START + (from + points) * 300_000 }
      const input = toPoints(chunks, range, SHORT)
        .toBody(FRAME)
        .toGzip(turn % 2 === 0)
      expect(spawnSync('gunzip', ['-t'], { input }).status).toBe(0)
    }
  })

  it('stores texts longer than a block of deflate', () => {
    const parts: Part[] = [Buffer.alloc(200_000, 'long '), Buffer.from('short')]
    expect(toText(parts).equals(Buffer.concat(parts as Buffer[]))).toBe(true)
    expect(gunzipSync(Buffer.concat([...writeGzip(parts)])).equals(toText(parts))).toBe(true)
  })

  it.skipIf(!exists('python3'))('is decoded by Python', async () => {
    const { text, gzip } = await build()
    const script = 'import gzip,sys; sys.stdout.buffer.write(gzip.decompress(sys.stdin.buffer.read()))'
    expect(spawnSync('python3', ['-c', script], { input: gzip }).stdout.equals(text)).toBe(true)
  })

  it.skipIf(!exists('curl'))('is decoded by curl', async () => {
    const { text, gzip } = await build()
    const server = createServer((_, response) => {
      response.writeHead(200, { 'Content-Encoding': 'gzip', 'Content-Length': gzip.length }).end(gzip)
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const { stdout } = await promisify(execFile)('curl', ['-sS', '--noproxy', '*', '--compressed', url])
    server.close()
    expect(stdout).toBe(text.toString())
  })
})
