import { z } from 'zod'
import { defineComputedList } from '../lists/computed-list.ts'
import { idValue } from '../records/table.ts'

const categoryRecord = z
  .strictObject({
    _id: idValue.describe('Id of the category.'),
    name: z.string().describe('Name of the category.'),
    slug: z.string().describe('Its name as it stands in URLs; `category` takes it as well as the id.'),
  })
  .meta({ id: 'Category', description: 'What DAOs are about, such as lending.' })

export const categoriesRoute = defineComputedList({
  operation: 'listCategories',
  path: '/data/categories',
  tag: 'Registry',
  summary: 'The records behind category ids',
  description: 'All categories at once, by name: what `category` of a DAO and the parameter of the same name mean.',
  name: 'categories',
  record: categoryRecord,
  find: ({ registry }) => ({
    records: registry.categories.map(({ id, name, slug }) => ({ _id: id, name, slug })),
    asOf: registry.changedAt,
  }),
})
