import { createHash } from 'node:crypto'
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Credentials } from '../../shared/config/own-stores.ts'
import { DataError } from '../../shared/errors.ts'

export interface ServerConfiguration {
  /** The folder of the configuration; created if missing. */
  readonly dir: string
  readonly listensToTcp: boolean
  readonly writer: Credentials
  readonly reader: Credentials
  /** The databases and tables that the reader may read, in the form of a grant: `dao_data.*`. */
  readonly readable: string
  /** Bytes for all queries, merges and caches together. */
  readonly maxMemoryBytes: number
  /** Elements without an option here, such as clusters. */
  readonly more: string
}

interface ConfigurationFiles {
  readonly config: string
  /** SQL that makes the engine listen. */
  readonly start: string
}

const PRIVATE = { mode: 0o600 }

/** The engine's initial user. */
const ENGINE_USER = 'default'

/**
 * Writes the engine's startup files, readable for their owner only.
 * @throws DataError `config` if user names are invalid.
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
  // Overwriting a file would keep its old mode.
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
 * The engine starts as the user `default`, which cannot have a password here. Three limits prevent that others use it:
 * statements have at most one AST element, which excludes every SELECT; the quota allows only the statements that start
 * listening; and its only grant is for those.
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
