import { z } from 'zod'
import { idValue } from '../formats/formats.ts'
import { defineComputedList } from '../lists/lists.ts'

const categoryRecord = z
  .strictObject({
    _id: idValue.describe('Id of the category.'),
    name: z.string().describe('Name of the category.'),
    slug: z.string().describe('Name in URLs; the parameter `category` accepts it and the id.'),
  })
  .meta({ id: 'Category', description: 'A field of DAOs, such as lending.' })

export const categoriesRoute = defineComputedList({
  operation: 'listCategories',
  path: '/data/categories',
  tag: 'Registry',
  summary: 'The records behind category ids',
  description: 'All categories in one page, by name: the meaning of `category` of a DAO, and of the parameter.',
  name: 'categories',
  record: categoryRecord,
  find: ({ registry }) => ({
    records: registry.categories.map(({ id, name, slug }) => ({ _id: id, name, slug })),
    asOf: registry.changedAt,
  }),
})
