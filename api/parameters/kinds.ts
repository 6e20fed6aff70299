import { z } from 'zod'
import { explainTime, parseTime, TIME_FORMS } from './time.ts'

/** Array parameters with values that may contain commas: each value is a separate parameter and never split. */
export const unsplitValues = new WeakSet<z.ZodType>()

const emptyValues = new WeakSet<z.ZodType>()

/** Accepts an empty value of a parameter; other parameters refuse it. */
export function mayBeEmpty<S extends z.ZodType>(value: S): S {
  emptyValues.add(value)
  return value
}

export const isEmptyAllowed = (value: z.ZodType): boolean => emptyValues.has(value)

/**
 * Number of edits (insert, delete, replace, swap of neighbours) between two words; `limit` if there are at least as
 * many.
 */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit
  let [beforeLast, last] = [[] as number[], Array.from({ length: b.length + 1 }, (_, j) => j)]
  let leastOfLast = 0
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    let least = i
    for (let j = 1; j <= b.length; j++) {
      const replaced = (last[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      let edits = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, replaced)
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      if (swapped) edits = Math.min(edits, (beforeLast[j - 2] ?? 0) + 1)
      row.push(edits)
      if (edits < least) least = edits
    }
    // No later row has fewer edits than the minimum of the last two.
    if (least >= limit && leastOfLast >= limit) return limit
    ;[beforeLast, last, leastOfLast] = [last, row, least]
  }
  return Math.min(limit, last[b.length] ?? limit)
}

/** Longer than any parameter or member: a longer word gets no suggestion. */
const MAX_LENGTH = 40

/** The most similar known word; undefined if none is similar. At most a third of it may differ. */
export function nearestWord(word: string, candidates: readonly string[]): string | undefined {
  if (word.length > MAX_LENGTH) return undefined
  const lower = word.toLowerCase()
  // Upper bound for accepted edits, from the longest known word.
  const longest = candidates.reduce((most, { length }) => Math.max(most, length), 0)
  const tooMany = Math.max(1, Math.ceil(longest / 3)) + 1
  let best: { candidate: string; edits: number } | undefined
  for (const candidate of candidates) {
    const limit = best?.edits ?? tooMany
    const edits = editDistance(lower, candidate.toLowerCase(), limit)
    if (edits < limit) best = { candidate, edits }
  }
  return best && best.edits <= Math.max(1, Math.ceil(best.candidate.length / 3)) ? best.candidate : undefined
}

const lastPartOf = (path: string) => path.slice(Math.max(path.lastIndexOf('.'), path.lastIndexOf('/')) + 1)

/** Normalizes a path for comparison: `market_cap` and `marketcap` both match `marketCap`. */
const foldPath = (path: string) => path.toLowerCase().replaceAll(/[^a-z0-9]/g, '')

/**
 * The most similar known path, with dots or slashes between its parts; undefined if none is similar. The last part
 * alone is enough: `price` matches `financialData.price`. The first known path wins if several match equally.
 */
export function nearestPath(path: string, candidates: readonly string[]): string | undefined {
  const [full, last] = [foldPath(path), foldPath(lastPartOf(path))]
  if (full === '') return undefined
  const same =
    candidates.find((one) => foldPath(one) === full) ?? candidates.find((one) => foldPath(lastPartOf(one)) === last)
  if (same !== undefined) return same
  const near = nearestWord(path, candidates)
  if (near !== undefined) return near
  const nearLast = nearestWord(lastPartOf(path), [...new Set(candidates.map(lastPartOf))])
  return nearLast && candidates.find((one) => lastPartOf(one) === nearLast)
}

/** Maximum values of one array parameter (docs/contract.md, section 2). */
export const MAX_VALUES = 100
const MAX_NAME_LENGTH = 200

const id = z
  .string()
  .regex(/^[0-9a-f]{24}$/, 'must be an id: 24 lower-case hexadecimal characters')
  .meta({ description: 'Id of a record.' })

/** Names are compared without regard to case, so the canonical one is lower-case. */
const name = z
  .string()
  .trim()
  .toLowerCase()
  .min(1, 'must not be empty')
  .max(MAX_NAME_LENGTH, `must have at most ${MAX_NAME_LENGTH} characters`)

/** One id. */
export const oneId = (noun: string, example: string) =>
  id.meta({ description: `Id of the ${noun}: 24 lower-case hexadecimal characters.`, examples: [example] })

/** One name of a single-entity route. */
export const oneName = (noun: string, example: string) =>
  name.meta({
    description: `Name of the ${noun}, without regard to case: the exact name, else a part that only one has.`,
    examples: [example],
  })

/** Search text, in lower case. */
export const searchText = name.meta({
  description:
    'Text to search for: a current or former symbol, name, slug or contract address or a part of one; an address of a treasury, governor or voting token; a category or a chain.',
  examples: ['uni'],
})

const several = <S extends z.ZodType<string>>(value: S, most = MAX_VALUES) =>
  z.array(value).max(most, `must have at most ${most} values`)

/** Several ids: repeated, as `id[]`, or separated by commas. */
export const manyIds = (noun: string, example: string) =>
  several(id)
    .optional()
    .meta({
      description: `Ids of ${noun}: \`id=a&id=b\`, \`id[]=a&id[]=b\` or \`id=a,b\`, at most ${MAX_VALUES}.`,
      examples: [[example]],
    })

/**
 * Several names, with a description of their meaning: repeated or as `name[]`, never split, because names may contain
 * commas.
 */
function severalNames(meaning: string, example: string) {
  const names = several(name)
  unsplitValues.add(names)
  return names.optional().meta({
    description: `${meaning} Repeated values, at most ${MAX_VALUES}; with \`id\` the union.`,
    examples: [[example]],
  })
}

/** Several names that select all matches. */
export const manyNames = (noun: string, example: string) =>
  severalNames(`Names of ${noun}, without regard to case: a part of the name or the whole symbol.`, example)

/** Several names, each of one entity, with the rules of a single-entity route. */
export const eachName = (noun: string, example: string) =>
  severalNames(
    `Names of ${noun}, without regard to case: of each the exact name, else a part that only one has.`,
    example,
  )

/** Several slugs or ids of records that entities belong to, such as categories. */
export const manyReferences = (noun: string, plural: string, example: string) =>
  several(z.string().toLowerCase())
    .optional()
    .meta({
      description: `Only records that belong to one of these ${plural}: ids or slugs of /data/${plural}, repeated or separated by commas, at most ${MAX_VALUES}. An unknown ${noun} is an error.`,
      examples: [[example]],
    })

/** Tokens by id or symbol, each with its share of a basket after a colon. */
export const manyBasketTokens = several(
  z
    .string()
    .toLowerCase()
    .regex(/^[^:\s]{1,60}(:[0-9.e+-]{1,30})?$/, 'must be an id or a symbol, with a share after a colon: UNI:0.5'),
)
  .min(1, 'must not be empty')
  .meta({
    description: `The tokens of a basket by id or symbol, without regard to case, repeated or separated by commas, at most ${MAX_VALUES}; each with its share after a colon for fixed weights. Shares are scaled to a sum of 1.`,
    examples: [['UNI:0.5', 'AAVE:0.5']],
  })

/** A whole number from 1 to a maximum. */
export function integerParameter(max: number) {
  const rule = `must be a whole number, at least 1 and at most ${max}`
  return z.int(rule).min(1, rule).max(max, rule)
}

/** Maximum number of records; larger values are an error and not clamped. */
export const limit = (noun: string, bounds: { default: number; max: number }) =>
  integerParameter(bounds.max)
    .default(bounds.default)
    .meta({ description: `Most ${noun} to return, at most ${bounds.max}.`, examples: [Math.min(3, bounds.max)] })

/** The start of a page. The length allows three ordered texts and a name, in their longest encoding. */
const cursor = () =>
  z
    .string()
    .regex(/^[\w-]{1,8000}$/, 'must be taken from the Link of an answer')
    .optional()
    .meta({
      description:
        'Position after the last record of another response to the same query: copy it from the `Link` with `rel="next"`, or follow that link. `limit`, `fields` and `format` may change between pages.',
    })

/** The parameters of a paged answer: maximum records per page, and its start. */
export const page = (noun: string, bounds: { default: number; max: number }) => ({
  limit: limit(noun, bounds),
  cursor: cursor(),
})

/** The `limit` of a table of several entities, of which each has the default number of rows. */
export const limitOfEach = ({ noun, ...bounds }: { noun: string; default: number; max: number }) =>
  integerParameter(bounds.max)
    .optional()
    .meta({
      description: `most rows of all ${noun}s together, at most ${bounds.max}; by default the ${bounds.default} newest of each ${noun}, and the next page has those before.`,
      examples: [3],
    })

/** Like `page`, for an answer that is complete unless `limit` is given. */
export const optionalPage = (noun: string, bounds: { max: number }) => ({
  limit: optionalLimit(noun, bounds),
  cursor: cursor(),
})

/** Maximum number of records, unlimited by default. */
export const optionalLimit = (noun: string, bounds: { max: number }) =>
  integerParameter(bounds.max)
    .optional()
    .meta({ description: `Most ${noun} to return, at most ${bounds.max}; default: all.`, examples: [100] })

/** One of a few words. */
export const oneOf = <const Words extends readonly [string, ...string[]]>(
  words: Words,
  description: string,
  example: Words[number],
) => z.enum(words, `must be one of ${words.join(', ')}`).meta({ description, examples: [example] })

const address = z
  .string()
  .toLowerCase()
  .regex(/^0x[0-9a-f]{40,64}$/, 'must be an address: 0x and 40 to 64 hexadecimal digits')
const ADDRESS_EXAMPLE = '0x683a4f9915d6216f73d6df50151725036bd26c02'

/** An account of an EVM chain or of Starknet. One account has many spellings, so the value is in lower case. */
export const account = (description: string) => address.meta({ description, examples: [ADDRESS_EXAMPLE] })

/** Several accounts: repeated, or separated by commas. */
export const manyAccounts = (noun: string, most = MAX_VALUES) =>
  several(address, most).meta({
    description: `Addresses of ${noun}, repeated or separated by commas, at most ${most}.`,
    examples: [[ADDRESS_EXAMPLE]],
  })

/** Additional members of each record. */
export const include = <const Words extends readonly [string, ...string[]]>(words: Words, description: string) =>
  z
    .array(z.enum(words, `must be some of ${words.join(', ')}`))
    .optional()
    .meta({ description, examples: [[words[0]]] })

/** A time, parsed to Unix milliseconds. */
export function time(description: string, example: string, options: { earliest?: string } = {}) {
  const earliest = options.earliest === undefined ? undefined : Date.parse(options.earliest)
  return z
    .string()
    .transform((text, context) => {
      const ms = parseTime(text)
      if (ms === undefined) context.addIssue(explainTime(text))
      else if (earliest !== undefined && ms < earliest) context.addIssue(`must not be before ${options.earliest}`)
      return ms ?? z.NEVER
    })
    .meta({ description: `${description} ${TIME_FORMS}`, examples: [example] })
}
