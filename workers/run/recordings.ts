import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { z } from 'zod'
import { DataError, toReason } from '../../shared/errors.ts'
import { recordedRun, type StoredBody, type StoredRun } from '../../shared/store/store.ts'

/**
 * Recorded runs: the answers of providers to one run of a job, and the rows that the code decoded from them when they were
 * accepted. A folder has a folder for each set:
 *
 *     <set>/recording.json        facts of the set
 *     <set>/<name>.run.jsonl.gz   the run, then a line per body
 *     <set>/<name>.rows.jsonl     the accepted rows, a line each
 */
const FACTS_FILE = 'recording.json'
const RUN_SUFFIX = '.run.jsonl.gz'
const ROWS_SUFFIX = '.rows.jsonl'

const setFacts = z.strictObject({
  about: z.string(),
  /** The folder of the registry's files, relative to the set. */
  registry: z.string(),
  /** The settings of the run. Keys have any value. */
  settings: z.record(z.string(), z.string()),
  /**
   * Whether the accepted rows have a hash instead of each value: the bodies of the set are in another folder, because
   * their values may not be redistributed.
   */
  hasHashes: z.boolean().default(false),
})

const runLine = z.strictObject({ dataset: z.string(), run: recordedRun })

const bodyLine = z.union([
  z.strictObject({ hash: z.string(), body: z.string() }),
  /** A body in a file of the data folder, or a part of it: the path of its members. */
  z.strictObject({ hash: z.string(), file: z.string(), at: z.array(z.union([z.string(), z.int()])) }),
])
type BodyLine = z.infer<typeof bodyLine>

const row = z.record(z.string(), z.unknown())
/** A decoded row as JSON has it, with its provider. */
export type RecordedRow = z.infer<typeof row>

/** One run with its accepted rows. */
export interface Recording {
  readonly name: string
  readonly dataset: string
  readonly run: StoredRun
  readonly bodies: ReadonlyMap<string, StoredBody>
  /** Undefined before the first rows are accepted. */
  readonly rows: readonly RecordedRow[] | undefined
  readonly rowsFile: string
}

export interface RecordingSet extends Omit<z.infer<typeof setFacts>, 'registry'> {
  readonly name: string
  /** The folder of the registry's files. */
  readonly registry: string
  /** Names of its recordings. */
  readonly names: readonly string[]
  /** Reads one; undefined if its bodies are in a data folder that does not exist. */
  read(name: string): Recording | undefined
}

/**
 * Opens the sets of a folder. `dataDir` has the files of bodies that are not in the folder itself.
 * @throws DataError `config` with the file, if the folder has no set or a file is damaged.
 */
export function openRecordings(folder: string, dataDir: string): readonly RecordingSet[] {
  if (!existsSync(folder)) throw new DataError('config', `${folder}: there is no such folder of recordings`)
  const sets = readdirSync(folder)
    .sort()
    .filter((name) => existsSync(join(folder, name, FACTS_FILE)))
  if (sets.length === 0) throw new DataError('config', `${folder}: no folder in it has a ${FACTS_FILE}`)
  return sets.map((name) => openSet(join(folder, name), name, dataDir))
}

function openSet(folder: string, name: string, dataDir: string): RecordingSet {
  const facts = parseLine(join(folder, FACTS_FILE), setFacts, readFileSync(join(folder, FACTS_FILE), 'utf8'))
  return {
    ...facts,
    name,
    registry: resolve(folder, facts.registry),
    names: readdirSync(folder)
      .filter((file) => file.endsWith(RUN_SUFFIX))
      .map((file) => file.slice(0, -RUN_SUFFIX.length))
      .sort(),
    read: (own) => readRecording(folder, own, dataDir),
  }
}

function readRecording(folder: string, name: string, dataDir: string): Recording | undefined {
  const file = join(folder, `${name}${RUN_SUFFIX}`)
  const [first = '', ...rest] = readLines(file)
  const { dataset, run } = parseLine(file, runLine, first)
  const lines = rest.map((line) => parseLine(file, bodyLine, line))
  if (lines.some((line) => 'file' in line && !existsSync(join(dataDir, line.file)))) return undefined
  const bodies = new Map(lines.map((line) => [line.hash, readBody(line, dataDir)]))
  const rowsFile = join(folder, `${name}${ROWS_SUFFIX}`)
  const rows = existsSync(rowsFile) ? readLines(rowsFile).map((line) => parseLine(rowsFile, row, line)) : undefined
  return { name, dataset, run, bodies, rows, rowsFile }
}

/** Accepts rows as those of a recording, in an order that does not depend on the code. */
export function writeRows(file: string, rows: readonly RecordedRow[]): void {
  const lines = rows.map((one) => JSON.stringify(one)).sort()
  writeFileSync(file, lines.map((line) => `${line}\n`).join(''))
}

/** Writes a run with the bodies of its answers into the folder of a set. */
export function writeRun(
  folder: string,
  name: string,
  run: z.input<typeof runLine>,
  bodies: readonly BodyLine[],
): void {
  const lines = [run, ...bodies].map((line) => `${JSON.stringify(line)}\n`)
  writeFileSync(join(folder, `${name}${RUN_SUFFIX}`), gzipSync(lines.join('')))
}

/** Writes the facts of a set. */
export function writeFacts(folder: string, facts: z.input<typeof setFacts>): void {
  writeFileSync(join(folder, FACTS_FILE), `${JSON.stringify(facts, null, 2)}\n`)
}

const readLines = (file: string) => readText(file).split('\n').filter(Boolean)

function readText(file: string): string {
  const bytes = readFileSync(file)
  return (file.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString()
}

function parseLine<S extends z.ZodType>(file: string, schema: S, text: string): z.output<S> {
  try {
    return schema.parse(JSON.parse(text))
  } catch (cause) {
    throw new DataError('config', `${file}: ${toReason(cause)}`, { cause })
  }
}

function readBody(line: BodyLine, dataDir: string): StoredBody {
  const body = 'body' in line ? line.body : readPart(join(dataDir, line.file), line.at)
  return { hash: line.hash, body, bytes: Buffer.byteLength(body), omitted: '' }
}

/** Returns a part of a JSON file, as text; the complete text without a path. */
function readPart(file: string, at: readonly (string | number)[]): string {
  const text = readText(file)
  if (at.length === 0) return text
  const part = at.reduce<unknown>((value, name) => Reflect.get(Object(value), name), JSON.parse(text))
  if (part === undefined) throw new DataError('config', `${file}: it has no ${at.join('.')}`)
  return JSON.stringify(part)
}
