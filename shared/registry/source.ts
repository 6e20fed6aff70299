import { statSync } from 'node:fs'
import { join } from 'node:path'
import { type IndexRecord, indexRecord } from './index-schema.ts'
import { type RecordKind, type RegistryFile, readRegistryFile, readRegistryRecord } from './registry-file.ts'
import {
  type CategoryRecord,
  type ChainRecord,
  categoryRecord,
  chainRecord,
  type DaoRecord,
  daoRecord,
  type TokenRecord,
  tokenRecord,
} from './schema.ts'

/** The schema and label of each list. */
export const KINDS = {
  categories: { record: categoryRecord, label: 'slug' },
  chains: { record: chainRecord, label: 'slug' },
  tokens: { record: tokenRecord, label: 'symbol' },
  daos: { record: daoRecord, label: 'slug' },
} as const satisfies Readonly<Record<string, RecordKind<unknown>>>

/** The four lists as read, before the checks between them. */
export interface RegistryFiles {
  readonly categories: RegistryFile<CategoryRecord>
  readonly chains: RegistryFile<ChainRecord>
  readonly tokens: RegistryFile<TokenRecord>
  readonly daos: RegistryFile<DaoRecord>
}

/**
 * The part of a registry that a process loads: all, or all but the DAOs. DAOs are two thirds of a large registry, and
 * token datasets do not use them.
 */
export type RegistryPart = 'whole' | 'tokens'

/** The records of a registry from any source. */
export interface RegistrySource {
  readonly files: RegistryFiles
  /** Null if unreadable. */
  readonly index: IndexRecord | null
  /** Mistakes within single records. */
  readonly mistakes: readonly string[]
  readonly part: RegistryPart
  /** Identifies this version of the records. */
  readonly version: string
  /** Activation time, in Unix milliseconds. */
  readonly changedAt: number
}

/** Name of the index among the lists; its file has a single record. */
export const INDEX = 'index'

/** Constant for all files, because no reader of files compares versions. */
const OF_FILES = 'files'

/** The folder of the shipped files. */
export const SHIPPED = import.meta.dirname

/** Reads the files in `dir`. Their activation time is that of the newest file. */
export function readFiles(dir: string): RegistrySource {
  const mistakes: string[] = []
  const files: RegistryFiles = {
    categories: readRegistryFile(dir, 'categories.json', KINDS.categories, mistakes),
    chains: readRegistryFile(dir, 'chains.json', KINDS.chains, mistakes),
    tokens: readRegistryFile(dir, 'tokens.json', KINDS.tokens, mistakes),
    daos: readRegistryFile(dir, 'daos.json', KINDS.daos, mistakes),
  }
  const index = readRegistryRecord(dir, 'index.json', indexRecord, mistakes)
  const times = [...Object.keys(KINDS), INDEX].map((list) => toTime(join(dir, `${list}.json`)))
  return { files, index, mistakes, part: 'whole', version: OF_FILES, changedAt: Math.max(...times) }
}

/** Modification time of a file, in Unix milliseconds; 0 if missing, because reading the file reports the mistake. */
const toTime = (path: string): number => statSync(path, { throwIfNoEntry: false })?.mtime.getTime() ?? 0
