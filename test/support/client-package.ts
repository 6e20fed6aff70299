import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { buildClient } from '../../tools/build-client.ts'

type Client = typeof import('../../clients/typescript/src/index.ts')

export interface ClientPackage {
  /** The package, ready for `npm pack`. */
  readonly folder: string
  /** The exports of the package. */
  readonly client: Client
  remove(): void
}

/** Builds and imports the client's package. */
export async function loadClientPackage(): Promise<ClientPackage> {
  const folder = mkdtempSync(join(tmpdir(), 'dao-data-client-'))
  buildClient(folder)
  const client: Client = await import(pathToFileURL(join(folder, 'dist/index.js')).href)
  return { folder, client, remove: () => rmSync(folder, { recursive: true, force: true }) }
}
