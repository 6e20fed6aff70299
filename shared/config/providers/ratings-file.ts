import { declareProvider, text } from './declaration.ts'

export const ratingsDeclaration = declareProvider({
  title: 'Ratings',
  about: 'your own file, JSON or CSV, by path or URL (docs/settings.md, "Ratings"). Without it there are no ratings.',
  settings: { RATINGS_SOURCE: text.optional() },
  toConfig: (s, limits) => ({ ratings: { ...limits, source: s.RATINGS_SOURCE } }),
  cost: 'free',
  data: [{ data: 'ratings', key: 'RATINGS_SOURCE', withoutKey: 'none: see [ratings](#ratings)' }],
  days: [],
})
