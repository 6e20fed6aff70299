import { createHash, type Hash } from 'node:crypto'
import { createReadStream, createWriteStream, existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { pipeline as connect, Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import { z } from 'zod'
import { DataError, toReason } from '../../shared/errors.ts'
import type { OnPart } from '../../shared/progress-bar.ts'

const file = z.object({ path: z.string().regex(/^\w+\/\d+\.tsv\.gz$/), rows: z.int(), sha256: z.string() })

/** The manifest of a backup. Hashes are of the uncompressed text. */
export const manifest = z.object({
  version: z.literal(1),
  createdAt: z.iso.datetime(),
  database: z.string(),
  /** The schema of the rows: the migrations of the database. */
  migrations: z.array(z.object({ name: z.string(), checksum: z.string() })),
  tables: z.array(
    z.object({
      name: z.string().regex(/^\w+$/),
      // The columns of a nested table have a dot in their names.
      columns: z.array(z.string().regex(/^\w+(\.\w+)?$/)),
      rows: z.int(),
      sha256: z.string(),
      files: z.array(file),
    }),
  ),
})

export type Manifest = z.infer<typeof manifest>
export type TableFiles = Manifest['tables'][number]

const MANIFEST = 'manifest.json'
const FILE_BYTES = 64 * 1024 * 1024
const NEWLINE = 10

/**
 * Creates the folder of a backup.
 * @throws DataError `config` if it is not empty or cannot be created.
 */
export async function makeFolder(folder: string): Promise<void> {
  try {
    await makeMissing(resolve(folder))
    if ((await readdir(folder)).length === 0) return
  } catch (cause) {
    throw new DataError('config', `${folder} cannot be made or read: ${toReason(cause)}`, { cause })
  }
  throw new DataError('config', `${folder} is not empty: a backup needs a new folder`)
}

/** Creates one level at a time: with `recursive`, Node retries forever if the system denies a missing name (/proc). */
async function makeMissing(folder: string): Promise<void> {
  if (existsSync(folder)) return
  await makeMissing(dirname(folder))
  await mkdir(folder)
}

/**
 * Writes a table's text into compressed files of complete lines, about 64 MiB of text each.
 * @throws DataError `config` if the table's folder already exists, `storage` if the text ends in anything but a row of
 * `columns`.
 */
export async function writeTable(
  folder: string,
  name: string,
  columns: readonly string[],
  content: AsyncIterable<Buffer>,
): Promise<TableFiles> {
  try {
    await mkdir(join(folder, name))
  } catch (cause) {
    throw new DataError('config', `${join(folder, name)} cannot be made: ${toReason(cause)}`, { cause })
  }
  const tableHash = createHash('sha256')
  const files: TableFiles['files'] = []
  let lines: Buffer[] = []
  let bytes = 0
  const flush = async () => {
    if (bytes === 0) return
    const path = `${name}/${String(files.length + 1).padStart(6, '0')}.tsv.gz`
    const text = Buffer.concat(lines)
    await pipeline(Readable.from([text]), createGzip({ level: 4 }), createWriteStream(join(folder, path)))
    files.push({ path, rows: countLines(text), sha256: createHash('sha256').update(text).digest('hex') })
    lines = []
    bytes = 0
  }
  let rest: Buffer = Buffer.alloc(0)
  for await (const chunk of content) {
    tableHash.update(chunk)
    const end = chunk.lastIndexOf(NEWLINE) + 1
    if (end === 0) {
      rest = Buffer.concat([rest, chunk])
      continue
    }
    lines.push(rest, chunk.subarray(0, end))
    bytes += rest.length + end
    rest = Buffer.from(chunk.subarray(end))
    requireRow(name, columns, chunk.subarray(0, end))
    if (bytes >= FILE_BYTES) await flush()
  }
  if (rest.length > 0) throw new DataError('storage', `${name} ended early, in the middle of a row`)
  await flush()
  const rows = files.reduce((sum, one) => sum + one.rows, 0)
  return { name, columns: [...columns], rows, sha256: tableHash.digest('hex'), files }
}

/** A server that fails during the response can report it only within the text, as a line that is not a row. */
function requireRow(name: string, columns: readonly string[], lines: Buffer): void {
  // A negative offset would count from the end.
  const start = lines.length < 2 ? 0 : lines.lastIndexOf(NEWLINE, lines.length - 2) + 1
  // A line may start in an earlier chunk. Its tail has fewer tabs than the line, never more.
  const cells = lines.subarray(start).toString().split('\t').length
  if (cells > columns.length || (start > 0 && cells !== columns.length))
    throw new DataError('storage', `${name} ended early: ${lines.subarray(start).toString().trim().slice(0, 300)}`)
}

function countLines(text: Buffer): number {
  let lines = 0
  for (let at = text.indexOf(NEWLINE); at !== -1; at = text.indexOf(NEWLINE, at + 1)) lines += 1
  return lines
}

/** The last file of a backup. A folder without it is not a finished backup. */
export async function writeManifest(folder: string, content: Manifest): Promise<void> {
  await writeFile(join(folder, `${MANIFEST}.part`), `${JSON.stringify(content, null, 2)}\n`)
  await rename(join(folder, `${MANIFEST}.part`), join(folder, MANIFEST))
}

/** @throws DataError `config` if the folder has no finished backup. */
export async function readManifest(folder: string): Promise<Manifest> {
  try {
    return manifest.parse(JSON.parse(await readFile(join(folder, MANIFEST), 'utf8')))
  } catch (cause) {
    throw new DataError('config', `${folder} has no finished backup: ${toReason(cause)}`, { cause })
  }
}

/** Identifies a backup. */
export const toBackupId = (content: Manifest): string =>
  createHash('sha256').update(JSON.stringify(content)).digest('hex')

export function openFile(folder: string, path: string): Readable {
  const text = createGunzip()
  // `pipe` alone would not end the text with the failure of the file.
  return connect(createReadStream(join(folder, path)), text, () => {})
}

/**
 * Reads and verifies every file of a backup: its content and rows, and that the files of a table are all its rows.
 * @throws DataError `storage` that names each missing, damaged or unlisted file, and each table with missing rows.
 */
export async function checkFiles(folder: string, { tables }: Manifest, onFile: OnPart = () => {}): Promise<void> {
  const mistakes: string[] = []
  const all = tables.reduce((sum, { files }) => sum + files.length, 0)
  let checked = 0
  for (const { name, files, rows, sha256 } of tables) {
    const before = mistakes.length
    const tableHash = createHash('sha256')
    for (const file of files) {
      mistakes.push(...(await findFault(folder, file, tableHash)))
      checked += 1
      onFile(checked, all)
    }
    const listed = files.reduce((sum, file) => sum + file.rows, 0)
    if (listed !== rows) mistakes.push(`${name}: the manifest lists files with ${listed} of ${rows} rows`)
    mistakes.push(...(await findUnlisted(folder, name, files)))
    if (mistakes.length === before && tableHash.digest('hex') !== sha256)
      mistakes.push(`${name}: its files are not the written content of the table`)
  }
  if (mistakes.length > 0) throw new DataError('storage', `the backup is damaged: ${mistakes.join('; ')}`)
}

/** Compares a file with the manifest, and adds its text to the hash of its table. */
async function findFault(
  folder: string,
  { path, rows, sha256 }: TableFiles['files'][number],
  tableHash: Hash,
): Promise<string[]> {
  const hash = createHash('sha256')
  let lines = 0
  try {
    for await (const chunk of openFile(folder, path) as AsyncIterable<Buffer>) {
      hash.update(chunk)
      tableHash.update(chunk)
      lines += countLines(chunk)
    }
  } catch (error) {
    return [`${path}: ${toReason(error)}`]
  }
  if (hash.digest('hex') !== sha256) return [`${path} differs from the written content`]
  return lines === rows ? [] : [`${path}: ${lines} rows, the manifest has ${rows}`]
}

/** The files in the folder of a table that the manifest does not list. The folder of an empty table may be missing. */
async function findUnlisted(folder: string, table: string, files: TableFiles['files']): Promise<string[]> {
  const place = join(folder, table)
  const names = existsSync(place) ? await readdir(place) : []
  const listed = new Set(files.map(({ path }) => path))
  return names
    .map((name) => `${table}/${name}`)
    .filter((path) => !listed.has(path))
    .map((path) => `${path} is not in the manifest`)
}
