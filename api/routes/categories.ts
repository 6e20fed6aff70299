import { z } from 'zod'
import { defineRoute } from '../define.ts'
import { answerKnown } from '../records/registry.ts'
import { toFileTime } from '../registry-files.ts'
import { idValue } from '../values.ts'

const categoryRecord = z.strictObject({ _id: idValue, name: z.string(), slug: z.string() })

/** The registry is read once, when the process starts. */
const LOADED_AS_OF = toFileTime('categories.json')

export const categoriesRoute = defineRoute({
  path: '/data/categories',
  tag: 'Registry',
  summary: 'The records behind category ids',
  query: {},
  record: categoryRecord,
  datasets: [],
  handle: (call) => {
    const records = call.registry.categories.map(({ id, name, slug }) => ({ _id: id, name, slug }))
    return answerKnown(call, { name: 'categories', records, asOf: LOADED_AS_OF })
  },
})
