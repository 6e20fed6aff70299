import { z } from 'zod'
import { oneOf } from '../parameters/kinds.ts'

/** The `exact` parameter. */
export const exactParameter = oneOf(
  ['true', 'false'],
  'With `true`, powers on governors also as decimal texts with all digits, which a JSON number cannot hold.',
  'true',
).optional()

/** A voting power as a decimal text. */
export const exactPower = z.string().regex(/^\d+(\.\d+)?$/)

/** SQL for an integer in base units as a decimal text of whole tokens; NULL stays NULL. */
export function toDecimalText(units: string, decimals: string): string {
  // leftPad cuts a text that is longer than its length.
  const digits = `leftPad(toString(${units}), greatest(length(toString(${units})), ${decimals} + 1), '0')`
  const whole = `substring(${digits}, 1, length(${digits}) - ${decimals})`
  const fraction = `trimRight(substring(${digits}, length(${digits}) - ${decimals} + 1), '0')`
  return `if(${decimals} = 0 OR ${fraction} = '', ${whole}, concat(${whole}, '.', ${fraction}))`
}
