import { z } from 'zod'

/** An integer in decimal digits. `Number` would also accept blanks (as 0), 0x10 and 1e9. `most` is the maximum. */
export const integer = (least: number, most = Number.MAX_SAFE_INTEGER) =>
  z
    .string()
    .trim()
    .regex(/^\d+$/, 'must be a whole number, in digits')
    .transform(Number)
    .pipe(z.number().int().min(least).max(most))

/** A number greater than 0 and at most 1. */
export const share = z
  .string()
  .trim()
  .regex(/^\d*\.?\d+$/, 'must be a number over 0 and up to 1, such as 0.5')
  .transform(Number)
  .pipe(z.number().positive().max(1))
