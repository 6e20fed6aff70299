import { createHash, randomUUID } from 'node:crypto'
import { createReadStream, existsSync } from 'node:fs'
import { mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { asyncBufferFromFile, parquetMetadataAsync } from 'hyparquet'
import { z } from 'zod'
import { DataError, toReason } from '../../shared/errors.ts'
import type { Database, Lock, Statement } from '../../shared/store/store.ts'

/** The facts about a file. */
export interface FileFacts {
  readonly bytes: number
  readonly sha256: string
}

/** Facts from the footer of a Parquet file: the number of rows, and the earliest and latest value of a column with times. */
export interface Footer {
  readonly rows: number
  readonly from: string | null
  readonly to: string | null
}

type Confirm = () => Promise<void>

/** Where a publication is written. Paths are relative to its root. A reader of a path gets the old or the new file. */
export interface Target {
  /** Its name in messages. */
  readonly place: string
  /** The text of a file; undefined if there is none. */
  readText(path: string): Promise<string | undefined>
  /** Replaces a file atomically. `confirm` is the last step before, and may throw. */
  writeText(path: string, text: string, confirm?: Confirm): Promise<FileFacts>
  /**
   * Writes the rows of a statement as one Parquet file, as ClickHouse makes its bytes, or not at all. `confirm` is the last
   * step before the file has its name, and may throw. ClickHouse gives an object its name, so there it is the first step.
   * @throws DataError `storage`
   */
  writeParquet(path: string, statement: Statement, confirm?: Confirm): Promise<FileFacts>
  /**
   * Facts of a file that `writeParquet` completed in an interrupted publication, if its bytes are still those that were
   * written; otherwise undefined.
   */
  readFinished(path: string): Promise<FileFacts | undefined>
  /** Reads a whole file; undefined if it is missing. */
  readFacts(path: string): Promise<FileFacts | undefined>
  /** Bytes of a file; undefined if it is missing. */
  readSize(path: string): Promise<number | undefined>
  /** @throws DataError `storage` for a file that is no Parquet. */
  readFooter(path: string, timeColumn?: string): Promise<Footer>
  /** Paths of the versioned files in the root and below these folders, and of all unfinished files. */
  listData(folders: readonly string[]): Promise<string[]>
  remove(path: string): Promise<void>
}

/** Files that this program makes: others in the folder are never touched. Unfinished ones begin with a dot. */
const DATA_FILE =
  /^(?:part-[0-9a-f]{16}\.parquet|(?:load|clickhouse|croissant|README)-[0-9a-f]{16}\.(?:sql|json|md)|\.[\w.-]+\.unfinished)$/

/** A target that writes and removes files only while a publication has its lock. */
export const whileHeld = (target: Target, { requireHeld }: Lock): Target => ({
  ...target,
  writeText: (path, text) => target.writeText(path, text, requireHeld),
  writeParquet: (path, statement) => target.writeParquet(path, statement, requireHeld),
  remove: async (path) => {
    await requireHeld()
    return target.remove(path)
  },
})

/**
 * Rows of a row group: two months of 5-minute prices of a token. Readers that filter by entity or time, or need few rows,
 * skip groups. Smaller ones would make the footer longer than most columns.
 */
const GROUP_ROWS = 16_000

const PARQUET = {
  output_format_parquet_compression_method: 'zstd',
  output_format_parquet_row_group_size: GROUP_ROWS,
  // ClickHouse splits only blocks of at least two groups.
  max_block_size: GROUP_ROWS,
  output_format_parquet_string_as_string: 1,
  output_format_parquet_write_page_index: 1,
  max_execution_time: 0,
  // Sorting a month of many tokens continues on the disk of ClickHouse.
  max_bytes_before_external_sort: 268_435_456,
  max_bytes_before_external_group_by: 268_435_456,
}

/**
 * A folder of this machine. ClickHouse may be another machine, and its bundled server may run as another user, so its
 * bytes come over HTTP and go to the file as they are. `INSERT INTO FUNCTION file()` is not faster.
 */
export function openFolder(db: Pick<Database, 'stream'> | undefined, folder: string): Target {
  const root = resolve(folder)
  const replace = async (path: string, content: AsyncIterable<Buffer>, confirm?: Confirm): Promise<FileFacts> => {
    const fullPath = join(root, path)
    // Unique: a publisher that was frozen may still write a file of the same version.
    const unfinished = join(dirname(fullPath), `.${basename(path)}.${randomUUID()}.unfinished`)
    const hash = createHash('sha256')
    let bytes = 0
    await inFolder(root, async () => {
      await makeFolders(dirname(fullPath))
      const file = await open(unfinished, 'w')
      try {
        for await (const chunk of content) {
          hash.update(chunk)
          bytes += chunk.length
          await file.writeFile(chunk)
        }
        await file.sync()
      } finally {
        await file.close()
      }
      await confirm?.()
      if (path.endsWith('.parquet')) {
        // A failure of the server in the middle ends in its text, and not in a footer.
        await readFooter(unfinished)
        await writeFile(`${toMarkerStart(fullPath)}${hash.copy().digest('hex')}${MARKER_END}`, '')
      }
      await rename(unfinished, fullPath)
      await syncFolders(root, dirname(fullPath))
    })
    return { bytes, sha256: hash.digest('hex') }
  }
  const readFacts = (path: string) =>
    orMissing(async () => {
      const hash = createHash('sha256')
      let bytes = 0
      for await (const chunk of createReadStream(join(root, path)) as AsyncIterable<Buffer>) {
        hash.update(chunk)
        bytes += chunk.length
      }
      return { bytes, sha256: hash.digest('hex') }
    })
  return {
    place: root,
    readText: (path) => orMissing(() => readFile(join(root, path), 'utf8')),
    writeText: (path, text, confirm) => replace(path, asChunks(Buffer.from(text)), confirm),
    writeParquet: async (path, statement, confirm) => {
      if (db === undefined) throw new Error('a folder that is only read')
      const settings = { ...PARQUET, ...statement.settings }
      return replace(path, await db.stream({ ...statement, settings, format: 'Parquet', isLong: true }), confirm)
    },
    readFinished: async (path) => {
      const start = basename(toMarkerStart(path))
      const names = (await orMissing(() => readdir(dirname(join(root, path))))) ?? []
      const facts = names.some((name) => name.startsWith(start)) ? await readFacts(path) : undefined
      return facts !== undefined && names.includes(`${start}${facts.sha256}${MARKER_END}`) ? facts : undefined
    },
    readFacts,
    readSize: (path) => orMissing(async () => (await stat(join(root, path))).size),
    readFooter: (path, timeColumn) => readFooter(join(root, path), timeColumn),
    listData: async (folders) => {
      const list = async (folder: string, recursive: boolean) =>
        (await orMissing(() => readdir(folder, { recursive, withFileTypes: true }))) ?? []
      const found = [list(root, false), ...folders.map((folder) => list(join(root, folder), true))]
      return (await Promise.all(found))
        .flat()
        .filter((entry) => entry.isFile() && DATA_FILE.test(entry.name))
        .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    },
    remove: (path) => inFolder(root, () => rm(join(root, path), { force: true })),
  }
}

/**
 * An empty file whose name has the hash of a completed data file, so that an interrupted publication can be continued. The
 * next complete publication removes it.
 */
const toMarkerStart = (path: string) => join(dirname(path), `.${basename(path)}.`)
const MARKER_END = '.unfinished'

/** Creates missing folders one by one: with `recursive`, Node never returns if the system refuses a name (/proc). */
async function makeFolders(folder: string): Promise<void> {
  if (existsSync(folder)) return
  await makeFolders(dirname(folder))
  await mkdir(folder)
}

async function* asChunks(content: Buffer) {
  yield content
}

async function orMissing<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw error
  }
}

/** Refusals of a disk or a folder, in contrast to those of a connection. */
const OF_DISK = new Set([
  'ENOSPC',
  'EDQUOT',
  'EACCES',
  'EPERM',
  'EROFS',
  'EIO',
  'ENOTDIR',
  'EISDIR',
  'EEXIST',
  'ENOENT',
])

/** @throws DataError `config` if the system refuses, which names the folder; `storage` if the content breaks off. */
async function inFolder<T>(folder: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    if (cause instanceof DataError) throw cause
    const reason = toReason(cause)
    if (OF_DISK.has(String((cause as NodeJS.ErrnoException).code))) {
      const next = 'free disk space, or let this user write there'
      throw new DataError('config', `${folder} cannot be written: ${reason}: ${next}`, { cause })
    }
    throw new DataError('storage', `the answer of ClickHouse broke off: ${reason}`, { cause })
  }
}

/** A renamed or new file survives a power loss once its folders are on the disk. */
async function syncFolders(root: string, folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
  if (folder !== root) await syncFolders(root, dirname(folder))
}

const toTime = (value: unknown) => (value instanceof Date ? value.toISOString() : undefined)

async function readFooter(file: string, timeColumn?: string): Promise<Footer> {
  try {
    const metadata = await parquetMetadataAsync(await asyncBufferFromFile(file))
    const times = metadata.row_groups.flatMap(({ columns }) => {
      const found = columns.find(({ meta_data: column }) => column?.path_in_schema.join('.') === timeColumn)
      const { min_value, max_value } = found?.meta_data?.statistics ?? {}
      return [toTime(min_value), toTime(max_value)].filter((time) => time !== undefined)
    })
    const sorted = times.sort()
    return { rows: Number(metadata.num_rows), from: sorted[0] ?? null, to: sorted.at(-1) ?? null }
  } catch (cause) {
    throw new DataError('storage', `${file}: no whole Parquet file: ${toReason(cause)}`, { cause })
  }
}

/** Access to `s3://` targets; ClickHouse uses its own configuration for absent members. */
export interface S3Access {
  readonly endpoint: string | undefined
  readonly accessKeyId: string | undefined
  readonly secretAccessKey: string | undefined
}

/**
 * An object store, which ClickHouse writes to and reads from itself. ClickHouse cannot delete objects: a rule of the
 * bucket removes replaced ones.
 */
function openS3(db: Database, to: string, access: S3Access): Target {
  const [, bucket = '', prefix = ''] = /^s3:\/\/([^/]+)\/?(.*?)\/*$/.exec(to) ?? []
  const root = [(access.endpoint ?? 'https://s3.amazonaws.com').replace(/\/$/, ''), bucket, prefix]
    .filter((one) => one !== '')
    .join('/')
  const keys = { key: access.accessKeyId ?? '', secret: access.secretAccessKey ?? '' }
  const signed = keys.key === '' ? '' : ', {key: String}, {secret: String}'
  const object = (format: string) => `s3({url: String}${signed}, '${format}')`
  const toParams = (path: string) => ({ ...keys, url: `${root}/${path}` })
  const write = async (path: string, format: string, { sql, params, settings, ...statement }: Statement) =>
    db.command({
      ...statement,
      sql: `INSERT INTO FUNCTION ${object(format)} ${sql}`,
      params: { ...params, ...toParams(path) },
      settings: { ...PARQUET, s3_truncate_on_insert: 1, ...settings },
    })
  const read = async <S extends z.ZodType>(path: string, format: string, values: string, schema: S) => {
    const sql = `SELECT ${values} FROM ${object(format)}`
    const settings = { max_execution_time: 0, s3_ignore_file_doesnt_exist: 1, input_format_allow_errors_num: 0 }
    const [row] = await db.rows({ name: 'read published object', sql, params: toParams(path), settings, schema })
    return row
  }
  const readFacts = async (path: string): Promise<FileFacts | undefined> =>
    read(path, 'RawBLOB', 'length(raw_blob) AS bytes, lower(hex(SHA256(raw_blob))) AS sha256', facts)
  const requireFacts = async (path: string) => {
    const found = await readFacts(path)
    if (found === undefined) throw new DataError('storage', `${root}/${path} is missing after it was written`)
    return found
  }
  return {
    place: to,
    readText: async (path) => (await read(path, 'RawBLOB', 'raw_blob AS text', text))?.text,
    writeText: async (path, content, confirm) => {
      await confirm?.()
      // In the statement, because parameters are a part of the URL, which is limited. Readers get the old or the new object.
      const bytes = Buffer.byteLength(content)
      await write(path, 'RawBLOB', {
        name: 'publish text',
        sql: `SELECT '${content.replaceAll(/[\\']/g, '\\$&')}' AS raw_blob`,
        settings: { max_query_size: 2 * bytes + 10_000, s3_max_single_part_upload_size: bytes + 1 },
      })
      return requireFacts(path)
    },
    writeParquet: async (path, statement, confirm) => {
      await confirm?.()
      await write(path, 'Parquet', statement)
      return requireFacts(path)
    },
    // An object is there as a whole or not at all.
    readFinished: readFacts,
    readFacts,
    readSize: async (path) => (await read(path, 'One', '_size AS bytes', size))?.bytes,
    readFooter: async (path, timeColumn) => {
      const times =
        timeColumn === undefined
          ? 'NULL AS from, NULL AS to'
          : `toDateTime64(min(${timeColumn}), 3, 'UTC') AS from, toDateTime64(max(${timeColumn}), 3, 'UTC') AS to`
      const found = await read(path, 'Parquet', `count() AS rows, ${times}`, footer)
      if (found === undefined) throw new DataError('storage', `${root}/${path}: no whole Parquet file`)
      return found
    },
    listData: async () => [],
    remove: async () => {},
  }
}

const facts = z.object({ bytes: z.int(), sha256: z.string() })
const size = z.object({ bytes: z.int() })
const text = z.object({ text: z.string() })
const footer = z.object({ rows: z.int(), from: z.string().nullable(), to: z.string().nullable() })

/**
 * The target of a publication: a folder, or `s3://bucket/prefix`.
 * @throws DataError `config` for another scheme.
 */
export function openTarget(db: Database, to: string, access: S3Access): Target {
  if (/^s3:\/\/[^/]+/.test(to)) return openS3(db, to, access)
  if (!/^\w+:\/\//.test(to)) return openFolder(db, to)
  throw new DataError('config', `expected a folder or s3://bucket/prefix to publish to, got ${to}`)
}
