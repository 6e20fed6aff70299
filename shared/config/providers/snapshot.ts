import { count, declareProvider, text, url } from './declaration.ts'

export const snapshotDeclaration = declareProvider({
  title: 'Snapshot',
  about: 'votes and proposals of DAOs. Works without a key; a key allows more calls.',
  settings: {
    SNAPSHOT_API_KEY: text.optional(),
    SNAPSHOT_BASE_URL: url.default('https://hub.snapshot.org'),
    SNAPSHOT_REQUESTS_PER_MINUTE: count.default(60),
  },
  toConfig: (s, limits) => ({
    snapshot: {
      ...limits,
      baseUrl: s.SNAPSHOT_BASE_URL,
      requestsPerMinute: s.SNAPSHOT_REQUESTS_PER_MINUTE,
      apiKey: s.SNAPSHOT_API_KEY,
    },
  }),
  cost: 'free',
  data: [{ data: 'governance', key: 'SNAPSHOT_API_KEY', withoutKey: 'works, with fewer calls' }],
  days: [
    {
      day: 'one request per list and space each hour; once a day a page per thousand proposals, at the end of a vote its votes again, and one for each 50 new or edited texts',
      plan: 'free: 60 a minute without a key',
    },
  ],
})
