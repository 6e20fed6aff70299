import { z } from 'zod'

/**
 * A whole number, written in digits: as numbers of JavaScript blanks would be 0, and 0x10 or 1e9 would pass.
 * `most` is the highest, where there is one.
 */
export const whole = (least: number, most = Number.MAX_SAFE_INTEGER) =>
  z
    .string()
    .trim()
    .regex(/^\d+$/, 'must be a whole number, in digits')
    .transform(Number)
    .pipe(z.number().int().min(least).max(most))

/** A share over 0 and up to 1. */
export const share = z
  .string()
  .trim()
  .regex(/^\d*\.?\d+$/, 'must be a number over 0 and up to 1, such as 0.5')
  .transform(Number)
  .pipe(z.number().positive().max(1))
