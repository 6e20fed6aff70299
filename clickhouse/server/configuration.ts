import { createHash } from 'node:crypto'
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Credentials } from '../../shared/config/own-stores.ts'
import { DataError } from '../../shared/errors.ts'

export interface ServerConfiguration {
  /** The folder of the configuration; created where it is missing. */
  readonly dir: string
  readonly listensToTcp: boolean
  readonly writer: Credentials
  readonly reader: Credentials
  /** What the reader may read, as a grant names it: `dao_data.*`. */
  readonly readable: string
  /** Bytes, for all queries, merges and caches together. */
  readonly maxMemoryBytes: number
  /** Elements for what has no option here, such as the clusters that the server knows. */
  readonly more: string
}

interface ConfigurationFiles {
  readonly config: string
  /** The statements that make the engine listen. */
  readonly start: string
}

const PRIVATE = { mode: 0o600 }

/** The user as which the engine begins. */
const ENGINE_USER = 'default'

/**
 * Writes what the engine reads at its start, for nobody else's eyes.
 * @throws DataError `config` for users whose names it cannot hold.
 */
export function writeConfiguration(configuration: ServerConfiguration): ConfigurationFiles {
  const { dir, writer, reader } = configuration
  requireNames([writer.name, reader.name])
  const [config, start, users] = ['config.xml', 'start.sql', 'users.xml'].map((name) => join(dir, name)) as [
    string,
    string,
    string,
  ]
  mkdirSync(join(dir, 'users.d'), { recursive: true, mode: 0o700 })
  // A file that is there keeps its mode when it is written anew.
  for (const file of [config, start, users]) rmSync(file, { force: true })
  const listen = ['HTTP', ...(configuration.listensToTcp ? ['TCP'] : [])].map((kind) => `SYSTEM START LISTEN ${kind};`)
  writeFileSync(start, listen.join('\n'), PRIVATE)
  writeFileSync(config, toConfig(configuration, users), PRIVATE)
  writeFileSync(users, toUsers(configuration, listen.length), PRIVATE)
  copyFileSync(join(import.meta.dirname, 'profiles.xml'), join(dir, 'users.d', 'profiles.xml'))
  return { config, start }
}

function requireNames(names: readonly string[]): void {
  const wrong = names.find((name) => name === ENGINE_USER || !/^[A-Za-z_][A-Za-z0-9_-]*$/.test(name))
  if (wrong !== undefined || new Set(names).size < names.length) {
    const rule = `two plain names that are not ${ENGINE_USER}`
    throw new DataError(
      'config',
      `ClickHouse's users here are ${rule}, not ${names.map((n) => `"${n}"`).join(' and ')}`,
    )
  }
}

const MIB = 1024 * 1024

const toConfig = ({ maxMemoryBytes, more }: ServerConfiguration, users: string): string => `<clickhouse>
  <users_config>${toXml(users)}</users_config>
  <timezone>UTC</timezone>
  <logger><level>none</level></logger>
  <max_server_memory_usage>${maxMemoryBytes}</max_server_memory_usage>
  <mark_cache_size>${256 * MIB}</mark_cache_size>
  <background_pool_size>2</background_pool_size>
  <access_control_improvements>
    <select_from_system_db_requires_grant>true</select_from_system_db_requires_grant>
  </access_control_improvements>
  ${more}
</clickhouse>
`

/**
 * The engine begins as the user `default`, who can have no password here. So that nobody else can be that user: it may not
 * run a statement of more than one word for the parser, which every SELECT is, and no more statements than make the server
 * listen. Of all grants it has the one for that.
 */
const toUsers = ({ writer, reader, readable }: ServerConfiguration, statements: number): string => `<clickhouse>
  <profiles>
    <default/>
    <start>
      <max_ast_elements>1</max_ast_elements>
      <constraints><max_ast_elements><const/></max_ast_elements></constraints>
    </start>
  </profiles>
  <quotas>
    <default/>
    <start><interval><duration>1000000000</duration><queries>${statements}</queries></interval></start>
  </quotas>
  <users>
    <${ENGINE_USER}>
      <password/>
      <networks><ip>127.0.0.1</ip></networks>
      <profile>start</profile>
      <quota>start</quota>
      <grants><query>GRANT SYSTEM LISTEN ON *.*</query></grants>
    </${ENGINE_USER}>
    <${writer.name}>
      ${toPassword(writer)}
      <networks><ip>::/0</ip></networks>
      <profile>writer</profile>
      <quota>default</quota>
    </${writer.name}>
    <${reader.name}>
      ${toPassword(reader)}
      <networks><ip>::/0</ip></networks>
      <profile>reader</profile>
      <quota>reader</quota>
      <grants><query>GRANT SELECT ON ${readable}</query></grants>
    </${reader.name}>
  </users>
</clickhouse>
`

const toPassword = ({ password }: Credentials): string =>
  `<password_sha256_hex>${createHash('sha256').update(password).digest('hex')}</password_sha256_hex>`

const toXml = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
