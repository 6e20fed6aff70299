import { createHash } from 'node:crypto'
import type { Partition, PublishedDataset } from './catalog.ts'

/** Name of a view: `dex-trades` would need quotes. */
const toView = (name: string) => name.replaceAll('-', '_')
const quote = (text: string) => `'${text.replaceAll("'", "''")}'`

/** DuckDB's types of the partition keys; months are `01` to `12` in the paths, and absent in those of years. */
const KEY_TYPES: Readonly<Record<string, string>> = { interval: 'VARCHAR', year: 'BIGINT', month: 'BIGINT' }

/** The files of a dataset by the keys in their paths: files of months, and files of years. */
function groupByKeys({ partitions }: PublishedDataset) {
  const groups = new Map<string, { readonly keys: readonly string[]; readonly files: Partition[] }>()
  for (const file of partitions) {
    const keys = Object.keys(file.keys)
    const group = groups.get(keys.join(' ')) ?? { keys, files: [] }
    groups.set(keys.join(' '), group)
    group.files.push(file)
  }
  return [...groups.values()]
}

/** The column `month` of files of years: the other files of the dataset have it in their paths. */
function addMonth(
  { partitionedBy, sortedBy, columns }: PublishedDataset,
  keys: readonly string[],
  toMonth: (time: string) => string,
): string {
  const time = columns.find(({ name, type }) => sortedBy.includes(name) && /^Date/.test(type))
  return time === undefined || keys.includes('month') || !partitionedBy.includes('month') ? '' : toMonth(time.name)
}

/**
 * Views over the files of the catalog. Each names its files: a replaced file stays in the folder for some days, and a
 * pattern would read both.
 */
function toDuckdb(datasets: readonly PublishedDataset[]): string {
  const views = datasets.map((dataset) => {
    const parts = groupByKeys(dataset).map(({ keys, files }) => {
      const types = keys.map((key) => `${key}: ${KEY_TYPES[key]}`).join(', ')
      const hive = types === '' ? '' : `, hive_partitioning = true, hive_types = {${types}}`
      const list = files.map(({ path }) => `  ${quote(`/${path}`)}`).join(',\n')
      // Without the functions of times with time zones, which are an extension.
      const month = (time: string) => `, month(make_timestamp(epoch_us(${time}))) AS month`
      return `SELECT *${addMonth(dataset, keys, month)} FROM read_parquet(list_transform([
${list}
], lambda file: coalesce(getvariable('published'), '.') || file)${hive})`
    })
    return `-- ${dataset.description}
CREATE OR REPLACE VIEW ${toView(dataset.name)} AS ${parts.join('\nUNION ALL BY NAME ')};`
  })
  return `-- Views over this publication for DuckDB 1.3 or newer. In the folder of the publication: duckdb -init load.sql
-- From elsewhere, set the address first:
--   SET VARIABLE published = 'https://example.org/published';
-- Days are dates in UTC. Times are instants, which DuckDB shows in the time zone of the session.

${views.join('\n\n')}
`
}

/** The same for ClickHouse, whose views have absolute addresses. */
function toClickHouse(datasets: readonly PublishedDataset[], base: string): string {
  const settings = 'SETTINGS use_hive_partitioning = 1, glob_expansion_max_elements = 100000'
  const views = datasets.map((dataset) => {
    const groups = groupByKeys(dataset)
    // A union is by position, and ClickHouse orders the keys of a path by itself.
    const names = [...dataset.columns.map(({ name }) => name), ...dataset.partitionedBy]
    const parts = groups.map(({ keys, files }) => {
      const paths = files.map(({ path }) => path).join(',')
      const list = files.length === 1 ? paths : `{${paths}}`
      const month = addMonth(dataset, keys, (time) => `, toInt64(toMonth(toDateTime64(${time}, 3, 'UTC'))) AS month`)
      const part = `SELECT *${month} FROM url(${quote(`${base}/${list}`)}, Parquet)`
      const ordered = names.map((name) => `\`${name}\``).join(', ')
      return groups.length === 1 ? `${part}\n${settings}` : `SELECT ${ordered} FROM (${part}\n${settings})`
    })
    return `-- ${dataset.description}
CREATE OR REPLACE VIEW ${toView(dataset.name)} AS ${parts.join('\nUNION ALL ')};`
  })
  return `-- Views over this publication for ClickHouse: clickhouse-client --multiquery < clickhouse.sql
-- Replace the address if the files are elsewhere.

${views.join('\n\n')}
`
}

const CROISSANT_TYPES: readonly (readonly [RegExp, string])[] = [
  [/^DateTime/, 'sc:DateTime'],
  [/^Date/, 'sc:Date'],
  [/^(?:U?Int|UInt)/, 'sc:Integer'],
  [/^(?:Float|Decimal)/, 'sc:Float'],
  [/^Bool/, 'sc:Boolean'],
]

function toCroissantType(type: string): { readonly dataType: string; readonly isArray: boolean } {
  const [, item] = /^Array\((.*)\)$/.exec(type) ?? []
  const bare = (item ?? type).replace(/^Nullable\((.*)\)$/, '$1')
  const [, dataType = 'sc:Text'] = CROISSANT_TYPES.find(([pattern]) => pattern.test(bare)) ?? []
  return { dataType, isArray: item !== undefined }
}

/** Croissant 1.0 (mlcommons): each partition is a FileObject, each dataset a FileSet and a RecordSet. */
function toCroissant(datasets: readonly PublishedDataset[], base: string): string {
  const files = datasets.flatMap(({ partitions }) => partitions)
  const document = {
    '@context': {
      ...{ '@language': 'en', '@vocab': 'https://schema.org/', sc: 'https://schema.org/' },
      ...{ cr: 'http://mlcommons.org/croissant/', rai: 'http://mlcommons.org/croissant/RAI/' },
      ...{
        dct: 'http://purl.org/dc/terms/',
        conformsTo: 'dct:conformsTo',
        recordSet: 'cr:recordSet',
        field: 'cr:field',
      },
      ...{ fileSet: 'cr:fileSet', fileObject: 'cr:fileObject', includes: 'cr:includes', source: 'cr:source' },
      ...{ extract: 'cr:extract', column: 'cr:column', repeated: 'cr:repeated' },
      dataType: { '@id': 'cr:dataType', '@type': '@vocab' },
    },
    '@type': 'sc:Dataset',
    conformsTo: 'http://mlcommons.org/croissant/1.0',
    name: 'dao-data',
    description: 'Data about decentralized organizations (DAOs) and their tokens, as Parquet files.',
    url: base,
    distribution: [
      ...files.map(({ path, bytes, sha256 }) => ({
        ...{ '@type': 'cr:FileObject', '@id': path, name: path, contentUrl: `${base}/${path}` },
        ...{ contentSize: `${bytes} B`, encodingFormat: 'application/vnd.apache.parquet', sha256 },
      })),
      ...datasets.map(({ name, partitions }) => ({
        ...{ '@type': 'cr:FileSet', '@id': `${name}-files`, name: `${name}-files` },
        containedIn: partitions.map(({ path }) => ({ '@id': path })),
        ...{ encodingFormat: 'application/vnd.apache.parquet', includes: '*.parquet' },
      })),
    ],
    recordSet: datasets.map(({ name, description, columns }) => ({
      ...{ '@type': 'cr:RecordSet', '@id': name, name, description },
      field: columns.map(({ name: column, description: about, type }) => {
        const { dataType, isArray } = toCroissantType(type)
        return {
          ...{ '@type': 'cr:Field', '@id': `${name}/${column}`, name: column, description: about, dataType },
          ...(isArray ? { repeated: true } : {}),
          source: { fileSet: { '@id': `${name}-files` }, extract: { column } },
        }
      }),
    })),
  }
  return `${JSON.stringify(document, null, 1)}\n`
}

function toReadme(datasets: readonly PublishedDataset[], base: string): string {
  const rows = datasets.map(({ name, description, partitions }) => {
    const sum = partitions.reduce((all, one) => all + one.rows, 0)
    return `| \`${name}\` | ${sum} | ${description} |`
  })
  const columns = datasets.map(({ name, columns: own, sortedBy, partitionedBy }) => {
    const lines = own.map((one) => `| \`${one.name}\` | ${one.type} | ${one.unit ?? ''} | ${one.description} |`)
    const keys = partitionedBy.length === 0 ? 'One file.' : `Partitioned by ${partitionedBy.join(', ')}.`
    const order = sortedBy.length === 0 ? '' : ` Sorted by ${sortedBy.join(', ')}.`
    return `### ${name}\n\n${keys}${order}\n\n| column | type | unit | meaning |\n| --- | --- | --- | --- |\n${lines.join('\n')}`
  })
  return `# dao-data as files

Data about decentralized organizations (DAOs) and their tokens, as Parquet files. Days are dates in UTC, times are instants in UTC, and an unknown value is null.
\`catalog.json\` lists every file with its rows, bytes, SHA-256, time range, coverage and version. Read the files that it names:
a replaced file stays in its folder for some days.

| dataset | rows | |
| --- | --- | --- |
${rows.join('\n')}

## DuckDB

In this folder, \`duckdb -init load.sql\` opens the views. From elsewhere:

\`\`\`sql
SET VARIABLE published = '${base}';
-- then the text of ${base}/load.sql
SELECT token_symbol, day, top10_share FROM holders ORDER BY day DESC LIMIT 10;
\`\`\`

## Python

\`\`\`python
import pandas as pd, requests
base = '${base}'
catalog = requests.get(f'{base}/catalog.json').json()
files = {d['name']: d['partitions'] for d in catalog['datasets']}
days = [p['path'] for p in files['prices'] if p['keys']['interval'] == '1d']
prices = pd.concat(pd.read_parquet(f'{base}/{path}') for path in days)
\`\`\`

## R

\`\`\`r
library(arrow); library(jsonlite)
base <- '${base}'
catalog <- fromJSON(paste0(base, '/catalog.json'), simplifyVector = FALSE)
prices <- Filter(function(d) d$name == 'prices', catalog$datasets)[[1]]
days <- Filter(function(p) p$keys$interval == '1d', prices$partitions)
data <- do.call(rbind, lapply(days, function(p) read_parquet(paste0(base, '/', p$path))))
\`\`\`

## ClickHouse

\`clickhouse.sql\` has a view for each dataset.

## Columns

${columns.join('\n\n')}
`
}

/** A file that is made from the catalog. */
interface Companion {
  /** Its name for readers: a copy of the newest version. */
  readonly name: string
  /** The path of this version, which stays as long as the data files that it names. */
  readonly path: string
  readonly text: string
  readonly sha256: string
}

function toCompanion(name: string, text: string): Companion {
  const sha256 = createHash('sha256').update(text).digest('hex')
  return { name, path: name.replace('.', `-${sha256.slice(0, 16)}.`), text, sha256 }
}

/** The files beside the data: how to read it with common tools. Equal catalogs have equal files. */
export function makeCompanions(all: readonly PublishedDataset[], publicUrl: string): Companion[] {
  const base = `${publicUrl}/published`
  // No view can be over nothing.
  const datasets = all.filter(({ partitions }) => partitions.length > 0)
  return [
    toCompanion('load.sql', toDuckdb(datasets)),
    toCompanion('clickhouse.sql', toClickHouse(datasets, base)),
    toCompanion('croissant.json', toCroissant(datasets, base)),
    toCompanion('README.md', toReadme(datasets, base)),
  ]
}
