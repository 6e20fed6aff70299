// Prints which of the occasional checks this commit runs, one name a line: those whose own folders changed since the
// last commit that passed all of them (.ci/fully-tested), and one third of the others, selected by the commit's hash.
// `node .ci/turns.mjs all` prints all names.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Names of files in test/occasional, or a stage of .ci/run, with the paths that they protect. */
const CHECKS = {
  cluster: ['clickhouse/cluster', 'clickhouse/migrations', 'clickhouse/migrate.ts', 'shared/store'],
  'cluster-shard-killed': ['clickhouse/cluster', 'shared/store', 'api/serving'],
  'redis-cluster': ['shared/queue', 'shared/store/change-stream.ts', 'shared/store/change-feed.ts', 'workers/http'],
  'old-stores': ['clickhouse/migrations', 'clickhouse/migrate.ts', 'clickhouse/schema', 'clickhouse/server', 'tools'],
  notebooks: ['docs/notebooks', 'clients/python', 'workers/publish', 'docs/publication.md'],
  nginx: ['docs/operations.md', 'api/http', 'api/server.ts', 'api/admission'],
  'python-samples': ['api/pages/guides', 'api/openapi', 'README.md'],
  'python-client': [
    'clients/python',
    'tools/python-client.ts',
    'tools/python-types.ts',
    'tools/client-sources.ts',
    'tools/build-python-client.ts',
  ],
  'python-connection': ['clients/python'],
  integrations: ['integrations'],
  'client-package': ['clients/typescript', 'tools/build-client.ts', 'tools/client-types.ts', 'tools/client-sources.ts'],
  'own-clickhouse-client': ['clickhouse/server', 'package-lock.json'],
  'black-box-without-cache': ['api/cache', 'api/series', 'api/prices', 'api/lists', 'api/serving'],
}
const TURNS = 3

const names = Object.keys(CHECKS)
const git = (...args) => execFileSync('git', args, { encoding: 'utf8' }).trim()

/** The changed paths since the last commit with all checks, or undefined if this clone does not have that commit. */
function findChanged() {
  const since = readFileSync(join(import.meta.dirname, 'fully-tested'), 'utf8').trim()
  try {
    return git('diff', '--name-only', since, 'HEAD').split('\n')
  } catch {
    console.error(`${since} of .ci/fully-tested is not in this clone: all occasional checks run`)
    return undefined
  }
}

function select() {
  const changed = process.argv.includes('all') ? undefined : findChanged()
  if (changed === undefined) return names
  const turn = Number.parseInt(git('rev-parse', 'HEAD').slice(0, 8), 16) % TURNS
  const isChanged = (name) => CHECKS[name].some((path) => changed.some((file) => `${file}/`.startsWith(`${path}/`)))
  return names.filter((name, at) => isChanged(name) || at % TURNS === turn)
}

console.log(select().join('\n'))
