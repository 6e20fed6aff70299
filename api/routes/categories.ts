import { z } from 'zod'
import { answerKnown } from '../records/known.ts'
import { idValue } from '../records/values.ts'
import { defineRoute } from '../route/define-route.ts'
import { toFileTime } from '../route/registry-files.ts'

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
