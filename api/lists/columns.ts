import type { z } from 'zod'
import { type MemberKind, toComparable, toMembers } from '../formats/formats.ts'
import { createSortedSet, type ListedRecord, nameOf, ORDER_BYTES, type RecordSet } from './engine.ts'

/** The values of one member, by the index of the record. */
interface StoredMember {
  readonly bytes: number
  jsonAt(index: number): string
  valueAt(index: number): number | string | null
}

/** Texts one after the other. Their JSON is stored, so that null is a text too. */
function storeTexts(texts: readonly string[]): StoredMember {
  const all = Buffer.from(texts.join(''))
  const ends = new Uint32Array(texts.length + 1)
  for (const [index, text] of texts.entries()) ends[index + 1] = (ends[index] as number) + Buffer.byteLength(text)
  const jsonAt = (index: number) => all.toString('utf8', ends[index], ends[index + 1])
  return {
    bytes: all.length + ends.byteLength,
    jsonAt,
    valueAt: (index) => (JSON.parse(jsonAt(index)) as string | null)?.toLowerCase() ?? null,
  }
}

/** Numbers, booleans and times in milliseconds; NaN is null. */
function storeNumbers(numbers: Float64Array, write: (value: number) => string): StoredMember {
  return {
    bytes: numbers.byteLength,
    jsonAt: (index) => (Number.isNaN(numbers[index]) ? 'null' : write(numbers[index] as number)),
    valueAt: (index) => (Number.isNaN(numbers[index]) ? null : (numbers[index] as number)),
  }
}

const WRITE: Readonly<Record<Exclude<MemberKind, 'text'>, (value: number) => string>> = {
  number: (value) => JSON.stringify(value),
  time: (value) => JSON.stringify(new Date(value)),
  boolean: (value) => String(value === 1),
}

/**
 * A set of records without lists and objects, stored by column. For lists of many small records it takes a fourth of
 * the memory of `createRecordSet`. Each page writes the JSON of its records.
 */
export async function createColumnSet(record: z.ZodObject, rows: AsyncIterable<ListedRecord>): Promise<RecordSet> {
  const members = [...toMembers(record).values()]
  const texts = members.map(() => [] as string[])
  const numbers = members.map(() => [] as number[])
  const facts = { key: [] as number[], asOf: [] as number[], marketCap: [] as number[] }
  for await (const { key, asOf, marketCap, json } of rows) {
    facts.key.push(key)
    facts.asOf.push(asOf)
    facts.marketCap.push(marketCap ?? Number.NaN)
    const values = JSON.parse(json.toString()) as Record<string, unknown>
    for (const [index, member] of members.entries()) {
      if (member.kind === 'text') texts[index]?.push(JSON.stringify(values[member.path]))
      else numbers[index]?.push(Number(toComparable(values, member) ?? Number.NaN))
    }
  }
  const stored = members.map(({ kind }, index) =>
    kind === 'text'
      ? storeTexts(texts[index] ?? [])
      : storeNumbers(Float64Array.from(numbers[index] ?? []), WRITE[kind]),
  )
  const [keys, times, caps] = [facts.key, facts.asOf, facts.marketCap].map((own) => Float64Array.from(own)) as [
    ...[Float64Array, Float64Array, Float64Array],
  ]
  const names = members.map(({ path }) => JSON.stringify(path))
  const byPath = new Map(members.map(({ path }, index) => [path, stored[index] as StoredMember]))
  const recordAt = (index: number): ListedRecord => ({
    key: keys[index] as number,
    asOf: times[index] as number,
    marketCap: Number.isNaN(caps[index]) ? null : (caps[index] as number),
    json: Buffer.from(`{${stored.map(({ jsonAt }, at) => `${names[at]}:${jsonAt(index)}`).join(',')}}`),
  })
  const hasNames = byPath.has('name') || byPath.has('symbol')
  return createSortedSet({
    bytes: stored.reduce((sum, { bytes }) => sum + bytes, 0) + keys.length * (3 * 8 + ORDER_BYTES),
    length: keys.length,
    recordAt,
    keyAt: (index) => keys[index] as number,
    nameAt: (index) => (hasNames ? nameOf(JSON.parse(recordAt(index).json.toString())) : ''),
    columns: (asked) => asked.map(({ path }) => (byPath.get(path) as StoredMember).valueAt),
  })
}
