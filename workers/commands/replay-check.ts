import { readVariable } from '../../shared/config/config.ts'
import { DataError } from '../../shared/errors.ts'
import { createLog } from '../../shared/telemetry/log.ts'
import { jobs } from '../jobs/list.ts'
import { type CheckedRecording, type CheckResult, checkRecordings, type RowDifference } from '../run/runner.ts'
import { toTable } from '../terminal/text-table.ts'

/** The recordings of the project. */
export const RECORDINGS = 'test/fixtures/recordings'
/** Differences in a table; the summary counts all. */
export const MOST_SHOWN = 100

interface CheckRequest {
  /** All datasets if empty. */
  readonly datasets: readonly string[]
  readonly folder: string
  readonly accepts: boolean
  readonly dataDir?: string
}

/** @throws DataError `payload` for an unknown dataset, `config` for a folder without recordings. */
export function checkAll({ datasets, dataDir, ...request }: CheckRequest): Promise<CheckResult> {
  const known = jobs.map(({ dataset }) => dataset.name)
  const unknown = datasets.filter((name) => !known.includes(name))
  if (unknown.length > 0)
    throw new DataError('payload', `${unknown.join(', ')}: no such dataset; there are ${known.join(', ')}`)
  return checkRecordings({
    ...request,
    dataDir: dataDir ?? (readVariable('UPSTREAM_DATA_DIR') || '../shared/data'),
    jobs,
    isWanted: (name) => datasets.length === 0 || datasets.includes(name),
    log: createLog('replay', 'fatal'),
  })
}

/** The result as a table of the differences and a summary, or as JSON. */
export function toCheckReport({ recordings, skipped }: CheckResult, asJson = false): string {
  if (asJson)
    return JSON.stringify(
      { recordings: recordings.map(({ dataset, ...one }) => ({ ...one, dataset: dataset.name })), skipped },
      null,
      2,
    )
  const all = recordings.flatMap(({ differences }) => differences)
  const cells = recordings.flatMap(toCells)
  const lines = cells.length === 0 ? [] : [toTable(['recording', 'row', 'entity', 'time (UTC)', 'members'], cells)]
  if (skipped.length > 0)
    lines.push(`skipped, because their bodies are not present (UPSTREAM_DATA_DIR): ${skipped.join(', ')}`)
  const rows = recordings.reduce((sum, one) => sum + one.rows, 0)
  const failed = recordings.filter(({ failure }) => failure !== undefined).length
  const failures = failed === 0 ? '' : `, ${failed} failed`
  lines.push(`${recordings.length} recordings, ${rows} rows: ${toCounts(all)}${failures}`)
  return lines.join('\n')
}

function toCells({ name, dataset: { entity, series }, differences, failure }: CheckedRecording): string[][] {
  const rows = differences.slice(0, MOST_SHOWN).map((one) => {
    const row = one.after ?? one.before ?? {}
    const of = entity === undefined ? '-' : String(row[entity])
    return [name, one.kind, of, String(row[series.time] ?? '-'), toChanges(one)]
  })
  return failure === undefined ? rows : [[name, 'failed', '-', '-', failure], ...rows]
}

/** Counts differences by kind. */
export function toCounts(differences: readonly Pick<RowDifference, 'kind'>[]): string {
  const count = (kind: RowDifference['kind']) => differences.filter((one) => one.kind === kind).length
  return `${count('added')} added, ${count('changed')} changed, ${count('removed')} removed`
}

/** The members of a row that differ, with both values. */
export function toChanges({ members, before, after }: Omit<RowDifference, 'kind'>): string {
  return members.map((name) => `${name}: ${toShown(before, name)} -> ${toShown(after, name)}`).join(', ')
}

function toShown(row: RowDifference['before'], name: string): string {
  if (row === undefined) return 'no row'
  const text = JSON.stringify(row[name]) ?? 'null'
  return text.length > 40 ? `${text.slice(0, 40)}...` : text
}
