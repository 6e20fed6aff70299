import { join } from 'node:path'
import { expect, it } from 'vitest'
import { routes } from '../../api/routes.ts'
import { datasets } from '../../shared/datasets/list.ts'
import { LIST_PATHS, LISTS, SERIES, SERIES_NAMES } from '../../workers/alerts/series.ts'
import { jobs } from '../../workers/jobs/list.ts'

const HEAD = `// Written by \`npx vitest run -u --project unit test/unit/declared.test.ts\`, not by hand: what the page shows of the
// declarations of datasets, routes and alert rules, which it cannot import.`

/** Answers of the registry alone: an event tells the page that all answers have changed. */
const OF_REGISTRY = ['/data/categories', '/data/chains', '/data/index/compositions']

const quote = (text: string) => `'${text.replaceAll("'", "\\'")}'`
const toKey = (name: string) => (/^\w+$/.test(name) ? name : quote(name))
const toList = (names: readonly string[]) => `[${names.map(quote).join(', ')}]`
const toObject = (entries: readonly (readonly [string, string])[], indent = '  ') =>
  `{\n${entries.map(([name, value]) => `${indent}${toKey(name)}: ${value},\n`).join('')}${indent.slice(2)}}`

/** The labels of the series that rules about these entities can name. */
const toLabels = (of: string) =>
  toObject(
    SERIES_NAMES.filter((name) => SERIES[name].of === of).map((name) => [name, quote(SERIES[name].label)]),
    '    ',
  )

function toDeclared(): string {
  const reads = routes
    .filter(({ path, datasets: read }) => path.startsWith('/data/') && (read.length > 0 || OF_REGISTRY.includes(path)))
    .map(({ path, datasets: read }) => [path, toList(read.map(({ name }) => name))] as const)
  const hourly = jobs.filter(({ cadence, dataset }) => cadence === '1h' && dataset.cadence === '1d')
  return `${HEAD}

/** The title of every dataset. */
export const DATASET_TITLES = ${toObject(datasets.map(({ name, title }) => [name, quote(title)]))} as const

/** Datasets with a record a day that are read every hour, so that the record of today is at most an hour old. */
export const READ_HOURLY: readonly string[] = ${toList(hourly.map(({ dataset }) => dataset.name))}

/** The datasets that each answer is from. Other answers have no change events. */
export const READS: Readonly<Record<string, readonly string[]>> = ${toObject(reads)}

/** The series that rules can name, by kind of entity. */
export const ALERT_SERIES = ${toObject(['token', 'dao', 'none'].map((of) => [of, toLabels(of)]))} as const

/** The lists that rules can watch: title, and a filter as an example. */
export const ALERT_LISTS: Readonly<Record<string, readonly [title: string, example: string]>> = ${toObject(
    LIST_PATHS.map((path) => [path, toList([LISTS[path].title, LISTS[path].example])]),
  )}
`
}

it('the page has the present declarations of datasets, routes and alert rules', async () => {
  expect(OF_REGISTRY.filter((path) => !routes.some((route) => route.path === path))).toEqual([])
  await expect(toDeclared()).toMatchFileSnapshot(join(import.meta.dirname, '../../web/declared.ts'))
})
