import { oneOf } from '../parameters/kinds.ts'

/** The `exact` parameter. */
export const exactParameter = oneOf(
  ['true', 'false'],
  'With `true`, powers on governors also as decimal texts with all digits, which a JSON number cannot hold.',
  'true',
).optional()
