import { z } from 'zod'
import { remembering } from '../../shared/memo.ts'

type Check = (value: unknown) => boolean

const checks = new WeakMap<z.ZodType, Check>()

/**
 * Returns a fast validator. True means that the schema accepts the value unchanged. False means nothing: the schema has
 * to decide. Most rows of a backfill need only this check, which takes a tenth of the time and copies nothing.
 */
export function toPlainCheck(schema: z.ZodType): Check {
  const known = checks.get(schema)
  if (known !== undefined) return known
  const check = toObjectCheck(schema)
  checks.set(schema, check)
  return check
}

/** Supports only strict objects without refinements over several members. */
function toObjectCheck(schema: z.ZodType): Check {
  if (!(schema instanceof z.ZodObject) || (schema.def.checks ?? []).length > 0) return () => false
  if (!(schema.def.catchall instanceof z.ZodNever)) return () => false
  const shape: Readonly<Record<string, z.core.$ZodType>> = schema.def.shape
  const names = Object.keys(shape)
  const members = Object.values(shape).map(toMemberCheck)
  return (value) => {
    if (typeof value !== 'object' || value === null || Object.keys(value).length !== names.length) return false
    const row = value as Readonly<Record<string, unknown>>
    // An absent member reads as undefined, which no member of a row may be.
    return members.every((check, at) => {
      const member = row[names[at] ?? '']
      return member !== undefined && check(member)
    })
  }
}

function toMemberCheck(member: z.core.$ZodType): Check {
  if (member instanceof z.ZodNullable) {
    const check = toMemberCheck(member.def.innerType)
    const overwrites = (member.def.checks ?? []).filter((one) => one instanceof z.core.$ZodCheckOverwrite)
    if (overwrites.length === (member.def.checks ?? []).length)
      return (value) => (value === null || check(value)) && overwrites.every((one) => isLeft(one, value))
  }
  if (member instanceof z.ZodBoolean && !hasChecks(member)) return (value) => typeof value === 'boolean'
  if (member instanceof z.ZodISODateTime && !hasChecks(member) && member.def.pattern !== undefined) {
    const { pattern } = member.def
    const isTime = remembering((text) => pattern.test(text))
    return (value) => typeof value === 'string' && isTime(value)
  }
  if (member instanceof z.ZodNumber) {
    const check = toNumberCheck(member)
    if (check !== undefined) return check
  }
  return (value) => {
    const parsed = z.safeParse(member, value)
    return parsed.success && Object.is(parsed.data, value)
  }
}

/** Returns a predicate for a condition on a number, or undefined if the condition is not supported. */
function toCondition(condition: z.core.$ZodCheck | z.ZodNumberFormat): ((value: number) => boolean) | undefined {
  if (condition instanceof z.core.$ZodCheckNumberFormat)
    return condition._zod.def.format === 'safeint' ? Number.isSafeInteger : undefined
  if (condition instanceof z.core.$ZodCheckOverwrite) return (value) => isLeft(condition, value)
  if (condition instanceof z.core.$ZodCheckGreaterThan) {
    const { inclusive } = condition._zod.def
    const bound = Number(condition._zod.def.value)
    return (value) => (inclusive ? value >= bound : value > bound)
  }
  if (condition instanceof z.core.$ZodCheckLessThan) {
    const { inclusive } = condition._zod.def
    const bound = Number(condition._zod.def.value)
    return (value) => (inclusive ? value <= bound : value < bound)
  }
  return undefined
}

/** `z.int()` is itself a condition. */
function toNumberCheck(member: z.ZodNumber): Check | undefined {
  const all = [...(member instanceof z.ZodNumberFormat ? [member] : []), ...(member.def.checks ?? [])]
  const conditions = all.flatMap((condition) => toCondition(condition) ?? [])
  if (conditions.length < all.length) return undefined
  return (value) =>
    typeof value === 'number' && Number.isFinite(value) && conditions.every((condition) => condition(value))
}

const isLeft = (overwrite: z.core.$ZodCheckOverwrite, value: unknown) => Object.is(overwrite._zod.def.tx(value), value)

const hasChecks = ({ def }: { readonly def: { readonly checks?: readonly unknown[] | undefined } }) =>
  (def.checks ?? []).length > 0
