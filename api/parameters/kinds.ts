import { z } from 'zod'
import { parseTime } from './time.ts'
import { wholeValues } from './whole-values.ts'

/** Most values that one array parameter takes (docs/contract.md, section 2). */
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

/** What is looked for, in lower case. */
export const searchText = name.meta({
  description: 'What to look for: a symbol, a name, a slug, a contract address or a part of one, or a category.',
  examples: ['uni'],
})

const several = <S extends z.ZodType<string>>(value: S) =>
  z.array(value).max(MAX_VALUES, `must have at most ${MAX_VALUES} values`)

/** Several ids: repeated, as `id[]`, or separated by commas. */
export const manyIds = (noun: string, example: string) =>
  several(id)
    .optional()
    .meta({
      description: `Ids of ${noun}: \`id=a&id=b\`, \`id[]=a&id[]=b\` or \`id=a,b\`, at most ${MAX_VALUES}.`,
      examples: [[example]],
    })

/** Names in one description of how each is meant: repeated or as `name[]`, never split, because names may contain commas. */
function severalNames(meaning: string, example: string) {
  const names = several(name)
  wholeValues.add(names)
  return names.optional().meta({
    description: `${meaning} Repeated values, at most ${MAX_VALUES}; with \`id\` the union.`,
    examples: [[example]],
  })
}

/** Several names that select whatever they fit. */
export const manyNames = (noun: string, example: string) =>
  severalNames(`Names of ${noun}, without regard to case: a part of the name or the whole symbol.`, example)

/** Several names of which each means one entity, as the name of a single-entity route does. */
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
      description: `Only what belongs to one of these ${plural}: ids or slugs of /data/${plural}, repeated or with commas between, at most ${MAX_VALUES}. An unknown ${noun} is refused.`,
      examples: [[example]],
    })

/** A whole number from 1 to a maximum. */
export function wholeNumber(max: number) {
  const rule = `must be a whole number, at least 1 and at most ${max}`
  return z.int(rule).min(1, rule).max(max, rule)
}

/** How many records at most; never clamped in silence. */
export const limit = (noun: string, bounds: { default: number; max: number }) =>
  wholeNumber(bounds.max)
    .default(bounds.default)
    .meta({ description: `Most ${noun} to return, at most ${bounds.max}.`, examples: [Math.min(3, bounds.max)] })

/** Where a page begins. Up to three ordered texts and a name, in the longest spelling that they have. */
const cursor = () =>
  z
    .string()
    .regex(/^[\w-]{1,8000}$/, 'must be taken from the Link of an answer')
    .optional()
    .meta({
      description:
        'Goes on where another answer to the same query ended: take it from the `Link` with `rel="next"`, or follow that link. `limit`, `fields` and `format` may change on the way.',
    })

/** The parameters of an answer in pages: how many records each holds at most, and where it begins. */
export const page = (noun: string, bounds: { default: number; max: number }) => ({
  limit: limit(noun, bounds),
  cursor: cursor(),
})

/** The same for an answer that is whole unless `limit` is given. */
export const optionalPage = (noun: string, bounds: { max: number }) => ({
  limit: optionalLimit(noun, bounds),
  cursor: cursor(),
})

/** How many records at most, without a limit unless it is given. */
export const optionalLimit = (noun: string, bounds: { max: number }) =>
  wholeNumber(bounds.max)
    .optional()
    .meta({ description: `Most ${noun} to return, at most ${bounds.max}; all when it is not given.`, examples: [100] })

/** One of a few words. */
export const oneOf = <const Words extends readonly [string, ...string[]]>(
  words: Words,
  description: string,
  example: Words[number],
) => z.enum(words, `must be one of ${words.join(', ')}`).meta({ description, examples: [example] })

const TIME_FORMS = 'ISO date, ISO date-time, Unix seconds or Unix milliseconds; UTC.'

/** A moment, in Unix milliseconds once parsed. */
export function time(description: string, example: string, options: { earliest?: string } = {}) {
  const earliest = options.earliest === undefined ? undefined : Date.parse(options.earliest)
  return z
    .string()
    .transform((text, context) => {
      const ms = parseTime(text)
      if (ms === undefined) context.addIssue(`must be a time that exists, as ${TIME_FORMS}`)
      else if (earliest !== undefined && ms < earliest) context.addIssue(`must not be before ${options.earliest}`)
      return ms ?? z.NEVER
    })
    .meta({ description: `${description} ${TIME_FORMS}`, examples: [example] })
}
