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

/** What the records of each list are. */
export const KINDS = {
  categories: { record: categoryRecord, label: 'slug' },
  chains: { record: chainRecord, label: 'slug' },
  tokens: { record: tokenRecord, label: 'symbol' },
  daos: { record: daoRecord, label: 'slug' },
} as const satisfies Readonly<Record<string, RecordKind<unknown>>>

/** The four lists as read, before they are judged against each other. */
export interface RegistryFiles {
  readonly categories: RegistryFile<CategoryRecord>
  readonly chains: RegistryFile<ChainRecord>
  readonly tokens: RegistryFile<TokenRecord>
  readonly daos: RegistryFile<DaoRecord>
}

/**
 * How much of a registry a process holds: all of it, or all but the DAOs, who are two thirds of a large one and of whom
 * datasets of tokens need nothing.
 */
export type RegistryPart = 'whole' | 'tokens'

/** What a registry is made of: its records, wherever they were read. */
export interface RegistrySource {
  readonly files: RegistryFiles
  /** Null where it could not be read. */
  readonly index: IndexRecord | null
  /** What is wrong with records by themselves. */
  readonly mistakes: readonly string[]
  readonly part: RegistryPart
  /** What tells these records from others. */
  readonly version: string
  /** When they came into force, in Unix milliseconds. */
  readonly changedAt: number
}

/** The name of the index, which is one record, among the lists. */
export const INDEX = 'index'

/** Of files, whatever they hold: nobody who reads them asks whether they differ. */
const OF_FILES = 'files'

/** The folder of the shipped files. */
export const SHIPPED = import.meta.dirname

/** The records of the files in `dir`. They are in force since the newest of the files. */
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

/** When a file last changed, in Unix milliseconds; one that is missing is told as a mistake. */
const toTime = (path: string): number => statSync(path, { throwIfNoEntry: false })?.mtime.getTime() ?? 0
