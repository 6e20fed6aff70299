import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { backUp } from '../../clickhouse/backup.ts'
import type { Config } from '../../shared/config/config.ts'
import { loadRegistry, type Registry } from '../../shared/registry/registry.ts'
import { createSite, EVERY_REQUEST, readAnswers } from './site.ts'

const FOLDER = join(import.meta.dirname, '../fixtures/baseline')
const SHIPPED = join(import.meta.dirname, '../../shared/registry')

/** Paths of the recorded baseline. */
const REGISTRY = join(FOLDER, 'registry')
const ANSWERS = join(FOLDER, 'answers.json')

/** A database of the first release with data of every dataset, and the responses of that release. */
export interface Baseline {
  /** The folder of its backup. */
  readonly backup: string
  /** The registry of that release: later records are not in the backup. */
  readonly registry: Registry
  readonly answers: Readonly<Record<string, string>>
}

export const loadBaseline = (): Baseline => ({
  backup: join(FOLDER, 'backup'),
  registry: loadRegistry(REGISTRY),
  answers: z.record(z.string(), z.string()).parse(JSON.parse(readFileSync(ANSWERS, 'utf8'))),
})

/**
 * Records the baseline again with the current schema, programs and responses. Only for a schema that is not released
 * yet.
 */
export async function recordBaseline(): Promise<void> {
  rmSync(FOLDER, { recursive: true, force: true })
  recordRegistry(REGISTRY)
  const registry = loadRegistry(REGISTRY)
  const site = await createSite({}, registry)
  await backUp(site.database.db, join(FOLDER, 'backup'), () => {})
  await recordAnswers(registry, site.config)
  await site.close()
}

/**
 * Records the current responses from the baseline's database. Only for responses that change on purpose. Routes without
 * data in the baseline have no recorded response.
 */
export async function recordAnswers(
  registry: Registry,
  config: Config,
  requests: readonly string[] = EVERY_REQUEST,
): Promise<void> {
  const all = await readAnswers({ registry }, config, requests)
  const answers = Object.fromEntries(
    requests.map((request) => [request, all[request]]).filter(([, answer]) => answer?.startsWith('200 ')),
  )
  writeFileSync(ANSWERS, `${JSON.stringify(answers, null, 2)}\n`)
}

/** Writes the records that the index needs: a few, with data in every dataset. */
export function recordRegistry(folder: string): void {
  mkdirSync(folder, { recursive: true })
  const read = <T>(name: string) => JSON.parse(readFileSync(join(SHIPPED, name), 'utf8')) as T
  const write = (name: string, records: unknown) =>
    writeFileSync(join(folder, name), `${JSON.stringify(records, null, 2)}\n`)
  const members = new Set(
    loadRegistry().index.compositions.flatMap(({ elements }) => elements.map(({ token }) => token.dao)),
  )
  for (const name of ['categories.json', 'chains.json', 'index.json']) write(name, read(name))
  write(
    'tokens.json',
    read<{ dao: string }[]>('tokens.json').filter(({ dao }) => members.has(dao)),
  )
  write(
    'daos.json',
    read<{ slug: string }[]>('daos.json').filter(({ slug }) => members.has(slug)),
  )
}
