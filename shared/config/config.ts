import { existsSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join, resolve } from 'node:path'
import { z } from 'zod'
import { DataError, toReason } from '../errors.ts'
import { allowance } from '../keys/allowance.ts'
import { datasetNames } from './datasets-off.ts'
import { hostnames, networks, toHttpUrl } from './networks.ts'
import { integer, share } from './numbers.ts'
import { clickhouseDir, withOwnStores } from './own-stores.ts'
import { count, text, url } from './providers/declaration.ts'
import { providerSettings, toProviders } from './providers/list.ts'
import { isRedisCluster } from './redis-url.ts'
import { toHint, withRunningStack } from './running-stack.ts'

/** Like curl: a proxy without a scheme is an http URL. */
const proxyUrl = z
  .string()
  .transform((value) => (value.includes('://') ? value : `http://${value}`))
  .pipe(
    z.url({
      protocol: /^https?$/,
      error: 'must be the http or https URL of a proxy, such as http://proxy.example:3128',
    }),
  )
const port = integer(0, 65_535)
const identifier = text.regex(/^[a-zA-Z_][a-zA-Z0-9_]*$/, 'must be a plain identifier: letters, digits and _')

/** Days, or `forever`. */
const retention = z.union(
  [z.literal('forever').transform(() => Number.POSITIVE_INFINITY), integer(0, 36_500)],
  'must be a number of days up to 36500, or forever',
)

/** A domain, or an address in brackets (RFC 5321, section 4.1.3). */
const smtpName = text.regex(
  /^(?:[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?(?:\.(?!$)|$)){1,20}$|^\[(?:IPv6:[\da-f:.]+|[\d.]+)\]$/i,
  'must be a host name such as alerts.example.org, or an address such as [192.0.2.1]',
)

/** Whether a URL has only a scheme, a host and a port. Invalid URLs pass, because the URL schema reports them. */
function isServerAlone(text: string): boolean {
  if (!URL.canParse(text)) return true
  const { username, password, pathname, search, hash } = new URL(text)
  return pathname === '/' && [username, password, search, hash].every((part) => part === '')
}

/** The client would prefer the values in the URL to these settings. */
const NOT_ALONE =
  'must have only scheme, host and port: users and passwords are CLICKHOUSE_USER, CLICKHOUSE_PASSWORD, CLICKHOUSE_READ_USER and CLICKHOUSE_READ_PASSWORD, the database is CLICKHOUSE_DATABASE'

/**
 * Every setting with its default. The keys are the names of environment variables. A test compares them with
 * `.env.example` and the tables of `docs/settings.md`. Settings of one provider are in its file of `providers/`.
 */
export const settings = z.object({
  DAO_DATA_MODE: z.enum(['demo', 'live']).default('live'),
  LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'silent']).default('info'),
  DATA_DIR: text.default('.data'),

  CLICKHOUSE_URL: url.refine(isServerAlone, NOT_ALONE).default('http://127.0.0.1:8123'),
  CLICKHOUSE_DATABASE: identifier.default('dao_data'),
  CLICKHOUSE_CLUSTER: identifier.optional(),
  CLICKHOUSE_USER: text.default('writer'),
  CLICKHOUSE_PASSWORD: z.string().default(''),
  CLICKHOUSE_READ_USER: text.default('reader'),
  CLICKHOUSE_READ_PASSWORD: z.string().default(''),
  CLICKHOUSE_EMBEDDED_HOST: text.default('127.0.0.1'),
  CLICKHOUSE_EMBEDDED_PORT: port.default(8123),
  CLICKHOUSE_EMBEDDED_TCP_PORT: port.optional(),
  CLICKHOUSE_EMBEDDED_OS_USER: text.optional(),
  CLICKHOUSE_EMBEDDED_MEMORY_MB: count.default(4096),

  REDIS_URL: z
    .url({ protocol: /^rediss?(\+cluster)?$/, error: 'must be a redis, rediss, redis+cluster or rediss+cluster URL' })
    .default('redis://127.0.0.1:6379'),
  QUEUE_PREFIX: text.regex(/^[^{}]+$/, 'must not contain braces').default('dao-data'),

  API_HOST: text.default('127.0.0.1'),
  API_PORT: port.default(3000),
  PUBLIC_URL: url.optional(),
  API_PROCESSES: z.union([z.literal('auto'), integer(1, 64)], 'must be a number up to 64, or auto').default(1),
  API_CONCURRENCY: z.union([z.literal('auto'), integer(1, 256)], 'must be a number up to 256, or auto').default('auto'),
  API_CACHE_MB: integer(0).default(128),
  API_SPOOL_MB: integer(0).default(1024),
  // The sum of this and the time limit of a request must be less than `STOP_DEADLINE_MS`.
  API_DRAIN_SECONDS: integer(0, 10).default(2),
  CONNECTIONS_PER_ADDRESS: count.default(512),
  API_ANSWER_SECONDS: integer(1, 600).default(30),
  STREAM_CLIENTS: count.default(5_000),
  STREAM_CLIENTS_PER_ADDRESS: count.default(50),
  TRUSTED_PROXIES: networks.default([]),
  MCP_HOSTS: hostnames.default([]),
  MCP_API_KEY: text.optional(),
  API_KEYS_FILE: text.optional(),
  RATE_LIMIT_ANONYMOUS: allowance.optional(),
  OPS_HOST: text.default('127.0.0.1'),
  OPS_HOSTS: hostnames.default([]),
  API_OPS_PORT: port.default(9464),
  SCHEDULER_OPS_PORT: port.default(9465),
  WORKER_OPS_PORT: port.default(9466),
  OPS_TOKEN: text.optional(),

  PUBLISH_TO: text.optional(),
  PUBLISH_KEEP_DAYS: integer(0, 3650).default(7),
  PUBLISH_S3_ENDPOINT: url.optional(),
  PUBLISH_S3_ACCESS_KEY_ID: text.optional(),
  PUBLISH_S3_SECRET_ACCESS_KEY: text.optional(),
  PUBLISHED_FOLDER: text.optional(),

  ALERTS_FILE: text.optional(),
  ALERTS_API_URL: url.optional(),
  ALERTS_PRIVATE_NETWORKS: networks.default([]),
  ALERTS_SMTP_NAME: smtpName.optional(),

  TREASURY_FLOW_LABELS_FILE: text.optional(),

  DATASETS_OFF: datasetNames.default([]),
  WORKER_QUEUES: text.default('all'),
  WORKER_CONCURRENCY: count.default(2),
  WORKER_HISTORY_CONCURRENCY: count.default(1),
  // Must be less than `STOP_DEADLINE_MS`.
  WORKER_DRAIN_SECONDS: integer(0, 20).default(15),

  HTTP_PROXY: proxyUrl.optional(),
  HTTPS_PROXY: proxyUrl.optional(),
  NO_PROXY: z.string().default(''),

  PROVIDER_HISTORY_SHARE: share.default(0.5),
  PROVIDER_TIMEOUT_MS: count.default(30_000),
  PROVIDER_MAX_BYTES: count.default(64 * 1024 * 1024),

  RAW_ANSWERS_DAYS: retention.default(30),
  RAW_ANSWERS_UNREPEATABLE_DAYS: retention.default(Number.POSITIVE_INFINITY),
  RAW_ANSWERS_MAX_MB: count.default(16),
  PROVENANCE_RAW: z.enum(['true', 'false'], 'must be true or false').default('false'),

  ...providerSettings,
})

/** Variables that other programs read too. As in curl, their lower-case names take precedence. */
const PROXY_VARIABLES: readonly string[] = ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY']

/**
 * Concurrent statements that saturate a database on the same machine, where one statement serves several short ranges.
 */
const ANSWERS_PER_CORE = 4
/** The connection limit of a process. */
const MOST_ANSWERS = 32

/** A target of publications, if it is a folder of this machine. */
const toFolder = (target: string | undefined) => (target?.includes('://') ? undefined : target)

function toConfig(s: z.infer<typeof settings>, env: Environment) {
  return {
    mode: s.DAO_DATA_MODE,
    logLevel: s.LOG_LEVEL,
    dataDir: resolve(s.DATA_DIR),
    clickhouse: {
      url: s.CLICKHOUSE_URL,
      database: s.CLICKHOUSE_DATABASE,
      cluster: s.CLICKHOUSE_CLUSTER,
      user: s.CLICKHOUSE_USER,
      password: s.CLICKHOUSE_PASSWORD,
      readUser: s.CLICKHOUSE_READ_USER,
      readPassword: s.CLICKHOUSE_READ_PASSWORD,
      answerTimeoutMs: s.API_ANSWER_SECONDS * 1000,
      own: {
        dataDir: clickhouseDir(resolve(s.DATA_DIR)),
        host: s.CLICKHOUSE_EMBEDDED_HOST,
        port: s.CLICKHOUSE_EMBEDDED_PORT,
        tcpPort: s.CLICKHOUSE_EMBEDDED_TCP_PORT,
        osUser: s.CLICKHOUSE_EMBEDDED_OS_USER,
        maxMemoryBytes: s.CLICKHOUSE_EMBEDDED_MEMORY_MB * 1024 * 1024,
      },
    },
    // On a cluster, keys with the same hash tag (word in braces) are on one node, and a script can use only keys of one
    // node.
    redis: { url: s.REDIS_URL, prefix: isRedisCluster(s.REDIS_URL) ? `{${s.QUEUE_PREFIX}}` : s.QUEUE_PREFIX },
    api: {
      host: s.API_HOST,
      port: s.API_PORT,
      publicUrl: (s.PUBLIC_URL ?? toHttpUrl(s.API_HOST, s.API_PORT)).replace(/\/$/, ''),
      processes: s.API_PROCESSES === 'auto' ? availableParallelism() : s.API_PROCESSES,
      cacheBytes: s.API_CACHE_MB * 1024 * 1024,
      spoolBytes: s.API_SPOOL_MB * 1024 * 1024,
      maxAnswers:
        s.API_CONCURRENCY === 'auto'
          ? Math.min(ANSWERS_PER_CORE * availableParallelism(), MOST_ANSWERS)
          : s.API_CONCURRENCY,
      // The database spends a full core on each download.
      maxDownloads: Math.max(2, availableParallelism()),
      drainSeconds: s.API_DRAIN_SECONDS,
      connectionsPerAddress: s.CONNECTIONS_PER_ADDRESS,
      streams: { all: s.STREAM_CLIENTS, perClient: s.STREAM_CLIENTS_PER_ADDRESS },
      mcpHosts: s.MCP_HOSTS,
      mcpKey: s.MCP_API_KEY,
      trustedProxies: s.TRUSTED_PROXIES,
      limits: { keysFile: s.API_KEYS_FILE, anonymous: s.RATE_LIMIT_ANONYMOUS },
      publishedFolder: resolve(s.PUBLISHED_FOLDER ?? toFolder(s.PUBLISH_TO) ?? join(s.DATA_DIR, 'published')),
    },
    publish: {
      to: s.PUBLISH_TO,
      keepDays: s.PUBLISH_KEEP_DAYS,
      s3: {
        endpoint: s.PUBLISH_S3_ENDPOINT,
        accessKeyId: s.PUBLISH_S3_ACCESS_KEY_ID,
        secretAccessKey: s.PUBLISH_S3_SECRET_ACCESS_KEY,
      },
    },
    alerts: {
      file: s.ALERTS_FILE,
      apiUrl: s.ALERTS_API_URL,
      privateNetworks: s.ALERTS_PRIVATE_NETWORKS,
      smtpName: s.ALERTS_SMTP_NAME,
    },
    ops: {
      host: s.OPS_HOST,
      hosts: s.OPS_HOSTS,
      apiPort: s.API_OPS_PORT,
      schedulerPort: s.SCHEDULER_OPS_PORT,
      workerPort: s.WORKER_OPS_PORT,
      token: s.OPS_TOKEN,
    },
    worker: {
      queues: s.WORKER_QUEUES.split(',').map((name) => name.trim()),
      concurrency: { live: s.WORKER_CONCURRENCY, history: s.WORKER_HISTORY_CONCURRENCY },
      historyShare: s.PROVIDER_HISTORY_SHARE,
      drainSeconds: s.WORKER_DRAIN_SECONDS,
    },
    rawAnswers: {
      days: s.RAW_ANSWERS_DAYS,
      unrepeatableDays: s.RAW_ANSWERS_UNREPEATABLE_DAYS,
      maxBytes: s.RAW_ANSWERS_MAX_MB * 1024 * 1024,
      isServed: s.PROVENANCE_RAW === 'true',
    },
    treasuryFlows: { labelsFile: s.TREASURY_FLOW_LABELS_FILE },
    datasetsOff: s.DATASETS_OFF,
    proxy: { http: s.HTTP_PROXY, https: s.HTTPS_PROXY, none: s.NO_PROXY },
    tracing: { wanted: isTracingEnabled(env) },
    dex: { firstRunHours: s.DEX_FIRST_RUN_HOURS },
    providers: toProviders(s, { timeoutMs: s.PROVIDER_TIMEOUT_MS, maxBytes: s.PROVIDER_MAX_BYTES }),
  }
}

export type Config = ReturnType<typeof toConfig>

type Environment = Readonly<Record<string, string | undefined>>

/** OpenTelemetry's standard variables that turn tracing on or off. Its SDK reads them and all others itself. */
export const TRACING_VARIABLES = [
  'OTEL_EXPORTER_OTLP_ENDPOINT',
  'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
  'OTEL_TRACES_EXPORTER',
  'OTEL_SDK_DISABLED',
] as const

/** Whether the variables enable tracing: they name an exporter or an endpoint and do not disable the SDK. */
function isTracingEnabled(env: Environment): boolean {
  const [endpoint, tracesEndpoint, exporters, disabled] = TRACING_VARIABLES.map((name) => env[name]?.trim() ?? '')
  if (disabled?.toLowerCase() === 'true' || exporters?.split(',', 1)[0]?.trim() === 'none') return false
  return [endpoint, tracesEndpoint, exporters].some((value) => value !== '')
}

/** Reads `NAME_FILE` into `NAME`, so that secrets can come from mounted files instead of the environment. */
function withSecretFiles(env: Environment, mistakes: string[]) {
  const merged: Record<string, string | undefined> = {}
  for (const name of Object.keys(settings.shape)) {
    const file = env[`${name}_FILE`]
    // Compose files and copies of .env.example use an empty value for "not set".
    const value = (PROXY_VARIABLES.includes(name) ? env[name.toLowerCase()] : undefined) || env[name] || undefined
    if (file === undefined || file === '') merged[name] = value
    else if (value !== undefined) mistakes.push(`${name} and ${name}_FILE are both set: remove one`)
    else {
      try {
        const content = readFileSync(file, 'utf8').trim()
        // A file that is being written is empty for a moment. As an unset value, that would open what a secret protects.
        if (content === '') mistakes.push(`${name}_FILE: ${file} is empty: write the value, or unset ${name}_FILE`)
        merged[name] = content
      } catch (error) {
        mistakes.push(`${name}_FILE: ${toReason(error)}`)
      }
    }
  }
  return merged
}

/**
 * Parses the typed configuration from the environment.
 * @throws DataError `config` that lists all invalid settings by name.
 */
export function parseConfig(env: Environment): Config {
  const mistakes: string[] = []
  const parsed = settings.safeParse(withSecretFiles(env, mistakes))
  for (const issue of parsed.error?.issues ?? []) {
    const name = String(issue.path[0])
    const rawValue = env[name]
    // A URL of any setting may contain a password or a key.
    const isSecret = /KEY|PASSWORD|TOKEN|URL|_PROXY$/.test(name) || rawValue?.includes('://')
    const shown = rawValue === undefined || isSecret ? '' : ` (given: ${JSON.stringify(rawValue)})`
    mistakes.push(`${name}: ${issue.message}${shown}`)
  }
  if (mistakes.length > 0 || !parsed.success) {
    throw new DataError('config', `invalid settings:\n${mistakes.map((line) => `  - ${line}`).join('\n')}`)
  }
  return toConfig(parsed.data, env)
}

/**
 * The configuration of this process. The environment has precedence over `.env` of the working directory, and `.env`
 * over the access files of the stores in the data folder.
 */
export function loadConfig(): Config {
  loadEnvFile()
  return parseConfig(withOwnStores(process.env))
}

/**
 * The configuration of a command. Settings without a value come from the system that runs here; a line on standard
 * error names it.
 */
export function loadCommandConfig(): Config {
  loadEnvFile()
  return parseConfig(withOwnStores(withRunningStack(process.env, (line) => console.error(line))))
}

function loadEnvFile(): void {
  if (existsSync('.env')) process.loadEnvFile('.env')
}

/** Explains why a store may be unreachable; undefined if settings name the stores or a system runs. */
export const toStoresHint = (): string | undefined => toHint(process.env)

/** The environment of a child process: this process's variables, overridden by `own`. */
export function toChildEnvironment(own: Environment): NodeJS.ProcessEnv {
  return { ...process.env, ...own }
}

/** An environment variable that a file of the operator names, for a secret that is not in the file. */
export const readVariable = (name: string): string | undefined => process.env[name]

/** Whether a setting has a value in the environment, directly or through `NAME_FILE`. */
export function hasValue(name: string): boolean {
  return Boolean(process.env[name] || process.env[`${name}_FILE`])
}

/** Sets defaults for settings without a value, for this process and its children. */
export function provideSettings(values: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(values)) if (!hasValue(name)) process.env[name] = value
}
