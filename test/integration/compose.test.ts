import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { providerSettings } from '../../shared/config/providers/list.ts'
import { findFreePort } from '../../shared/free-port.ts'
import { CADENCES } from '../../shared/intervals.ts'
import { createRedis } from '../../shared/queue/redis.ts'
import { silent } from '../support/silent.ts'

const root = join(import.meta.dirname, '../..')
const read = (file: string) => readFileSync(join(root, file), 'utf8')

const service = z.looseObject({
  image: z.string(),
  profiles: z.array(z.string()).default([]),
  build: z.string().optional(),
  environment: z.record(z.string(), z.string()).default({}),
  volumes: z.array(z.string()).default([]),
  depends_on: z
    .union([
      z
        .array(z.string())
        .transform((names) =>
          Object.fromEntries(names.map((name) => [name, { condition: 'service_started', required: true }])),
        ),
      z.record(z.string(), z.object({ condition: z.string(), required: z.boolean().default(true) })),
    ])
    .default({}),
  healthcheck: z.looseObject({ test: z.array(z.string()) }).optional(),
  secrets: z.array(z.string()).default([]),
  mem_limit: z.string().optional(),
  stop_grace_period: z.string().optional(),
  entrypoint: z.array(z.string()).default([]),
  hostname: z.string().optional(),
  command: z.array(z.string()).optional(),
  read_only: z.boolean().default(false),
  security_opt: z.array(z.string()).default([]),
})
const compose = z.looseObject({
  services: z.record(z.string(), service),
  volumes: z.record(z.string(), z.null()),
  secrets: z.record(z.string(), z.object({ file: z.string() })),
})

/** The values that compose inserts for `${NAME:-default}` and `${NAME:+instead}`. */
function interpolate(text: string, env: Readonly<Record<string, string>>): string {
  return text.replace(/\$\{(\w+)(?::([-+])([^}]*))?\}/g, (_, name, kind, word) => {
    const value = env[name] ?? ''
    if (kind === '+') return value === '' ? '' : word
    return value === '' ? (word ?? '') : value
  })
}

/** The parser of another package: the test is skipped without it. */
function loadYaml(): ((text: string) => unknown) | undefined {
  try {
    const { parse } = createRequire(import.meta.url)('yaml')
    return (text) => parse(text, { merge: true })
  } catch {
    console.log('no YAML parser is installed: the compose file is not looked into')
    return undefined
  }
}
const parse = loadYaml()

const EXPORTED = /export (\w+)="\$\$\(cat \/run\/secrets\/(\w+)\)"/g

const MODES = { 'one server': {}, 'a cluster': { CLICKHOUSE_CLUSTER: 'dao_data' } } as const

it('tools/secrets.mjs creates files that every container user can read, with any umask', () => {
  const folder = mkdtempSync(join(tmpdir(), 'dao-data-secrets-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const make = () =>
    spawnSync('sh', [
      '-c',
      `umask 077; exec "$0" ${join(root, 'tools/secrets.mjs')} --into ${folder}`,
      process.execPath,
    ])
  const toModes = () => new Set(readdirSync(folder).map((name) => statSync(join(folder, name)).mode & 0o777))
  make()
  expect(toModes()).toEqual(new Set([0o644]))
  chmodSync(join(folder, 'redis_password'), 0o600)
  make()
  expect(toModes()).toEqual(new Set([0o644]))
})

describe.skipIf(parse === undefined).each(Object.entries(MODES))('docker-compose.yml for %s', (_name, env) => {
  const { services, volumes, secrets } = compose.parse(
    parse?.(interpolate(read('docker-compose.yml'), env)) ?? { services: {}, volumes: {}, secrets: {} },
  )
  const all = Object.entries(services)

  it('names only services, volumes and files that exist', () => {
    const used = new Set<string>()
    for (const [name, { depends_on, volumes: mounts }] of all) {
      for (const [on, { condition, required }] of Object.entries(depends_on)) {
        const second = services[on]
        expect(second, `${name} depends on ${on}`).toBeDefined()
        if (condition === 'service_healthy') expect(second?.healthcheck, `${name} waits for ${on}`).toBeDefined()
        if (required) expect(second?.profiles.every((profile) => services[name]?.profiles.includes(profile))).toBe(true)
      }
      for (const mount of mounts) {
        const [from = ''] = mount.split(':')
        if (from.startsWith('.')) expect(existsSync(join(root, from)), `${name} mounts ${from}`).toBe(true)
        else used.add(from)
      }
    }
    expect([...used].sort()).toEqual(Object.keys(volumes).sort())
  })

  it("pins images and runs the project's processes read-only with a health check", () => {
    for (const [name, one] of all) {
      if (one.build === undefined) expect(one.image, name).toMatch(/:v?\d+\.\d+/)
      if (one.build === undefined) continue
      expect([name, one.read_only, one.security_opt]).toEqual([name, true, ['no-new-privileges:true']])
      const file = one.command?.at(-1) ?? ''
      expect(existsSync(join(inject('compiled'), file)), `${name} runs ${file}`).toBe(true)
      if (name !== 'migrate') expect(one.healthcheck?.test.at(-1), name).toMatch(/\/health\/ready$/)
    }
    for (const [name, one] of all) expect(one.mem_limit, `${name} has a limit of memory`).toMatch(/^\d+[mg]$/)
    for (const [name, one] of all.filter(([, { volumes }]) => volumes.some((volume) => !volume.startsWith('.'))))
      if (!['prometheus', 'grafana'].includes(name))
        expect(one.stop_grace_period, `${name} stops in order`).toBeDefined()
    const workers = all.filter(([name]) => name.startsWith('worker-')).map(([, one]) => one.environment.WORKER_QUEUES)
    // One of the workers also evaluates alerts.
    expect(workers).toEqual(CADENCES.map((cadence) => (cadence === '5m' ? '5m,alerts' : cadence)))
  })

  it('contains no password: each is read from a file that tools/secrets.mjs creates', () => {
    const folder = mkdtempSync(join(tmpdir(), 'dao-data-secrets-'))
    try {
      const make = () =>
        spawnSync(process.execPath, [join(root, 'tools/secrets.mjs'), '--into', folder], { encoding: 'utf8' })
      expect(make().stdout.match(/: created/g)).toHaveLength(Object.keys(secrets).length)
      const created = () => Object.values(secrets).map(({ file }) => readFileSync(join(folder, basename(file)), 'utf8'))
      const first = created()
      expect(new Set(first).size).toBe(first.length)
      expect(make().stdout).not.toContain(': created')
      expect(created()).toEqual(first)
      expect(statSync(folder).mode & 0o777).toBe(0o700)
      writeFileSync(join(folder, 'redis_password'), '')
      expect(make()).toMatchObject({ status: 1, stderr: expect.stringContaining('redis_password is empty') })
    } finally {
      rmSync(folder, { recursive: true })
    }
    for (const [name, one] of all) {
      const text = JSON.stringify(one)
      for (const [, secret = ''] of text.matchAll(/\/run\/secrets\/(\w+)/g)) expect(one.secrets, name).toContain(secret)
      for (const secret of one.secrets) expect(Object.keys(secrets), name).toContain(secret)
      for (const [setting, value] of Object.entries(one.environment))
        if (/PASSWORD|SECRET|TOKEN/.test(setting))
          expect([setting, value]).toEqual([setting, expect.stringMatching(/^(\/run\/secrets\/\w+)?$/)])
    }
  })

  it('gives the API neither write credentials nor provider keys', () => {
    const { secrets: mounted = [], environment = {} } = services.api ?? {}
    expect(mounted).toEqual(['clickhouse_read_password', 'redis_url'])
    expect(environment.CLICKHOUSE_PASSWORD_FILE).toBe('')
    const keys = Object.keys(providerSettings).filter((name) => /KEY|TOKEN|RPC_URLS/.test(name))
    const ways = keys.flatMap((name) => [name, `${name}_FILE`])
    expect(ways.filter((name) => environment[name] !== '')).toEqual([])
  })

  it('starts a Redis that requires its password and reports healthy when it answers', async () => {
    const { redis } = services
    const folder = mkdtempSync(join(tmpdir(), 'dao-data-redis-'))
    const here = (text: string) =>
      text
        .replaceAll('$$', '$')
        .replaceAll('/run/secrets', folder)
        .replaceAll('/tmp/redis.conf', join(folder, 'redis.conf'))
    spawnSync(process.execPath, [join(root, 'tools/secrets.mjs'), '--into', folder])
    const port = await findFreePort()
    const [shell = '', flags = '', script = ''] = redis?.command ?? []
    const server = spawn(shell, [flags, `${here(script).trimEnd()} --port ${port} --dir ${folder}`], {
      stdio: 'ignore',
    })
    try {
      const health = here(redis?.healthcheck?.test.at(-1) ?? '').replace('redis-cli', `redis-cli -p ${port}`)
      await expect.poll(() => spawnSync('sh', ['-c', health]).status).toBe(0)
      const url = readFileSync(join(folder, 'redis_url'), 'utf8').replace('redis:6379', `127.0.0.1:${port}`)
      const client = createRedis(url, silent)
      expect(await client.config('GET', 'maxmemory*')).toEqual(expect.arrayContaining(['536870912', 'noeviction']))
      client.disconnect()
      const wrong = health.replace(/REDISCLI_AUTH=\S+ \S+/, 'REDISCLI_AUTH=wrong')
      expect(spawnSync('sh', ['-c', wrong]).status).not.toBe(0)
    } finally {
      server.kill()
      await once(server, 'exit')
      rmSync(folder, { recursive: true })
    }
  })

  it('limits the spool of the API, because its /tmp is memory', () => {
    const { API_SPOOL_MB } = services.api?.environment ?? {}
    expect(services.api?.mem_limit).toBe('1g')
    expect(Number(API_SPOOL_MB)).toBeLessThanOrEqual(256)
  })

  it('gives each cluster node its shard and replica', () => {
    const topology = read('clickhouse/server/cluster-topology.xml')
    const nodes = all.filter(([, one]) => 'CLICKHOUSE_SHARD' in one.environment)
    const hosts = [...topology.matchAll(/<host>(clickhouse[\w-]*)<\/host>/g)].map(([, host]) => host)
    expect(nodes.map(([name]) => name)).toEqual(hosts)
    expect(topology).toContain('<dao_data>')
    const places = nodes.map(
      ([, { environment }]) => `${environment.CLICKHOUSE_SHARD} ${environment.CLICKHOUSE_REPLICA}`,
    )
    expect(places).toEqual(['1 1', '1 2', '2 1', '2 2'])
    const expected = [
      ...topology.matchAll(/from_env="(\w+)"/g),
      ...read('clickhouse/server/users.xml').matchAll(/from_env="(\w+)"/g),
    ]
    for (const [name, one] of nodes) {
      const set = { ...one.environment }
      for (const [, variable = '', secret = ''] of (one.entrypoint.at(-1) ?? '').matchAll(EXPORTED)) {
        expect(one.secrets, name).toContain(secret)
        set[variable] = secret
      }
      for (const [, variable = ''] of expected) expect(set[variable], `${name}: ${variable}`).toBeTruthy()
      expect(one.hostname).toBe(name)
    }
    const keepers = all.filter(([, one]) => 'KEEPER_ID' in one.environment)
    const members = [...read('clickhouse/server/keeper.xml').matchAll(/<id>(\d)<\/id><hostname>([\w-]+)</g)]
    expect(keepers.map(([name, one]) => [one.environment.KEEPER_ID, name])).toEqual(
      members.map(([, id, name]) => [id, name]),
    )
    for (const [name] of keepers) expect(topology).toContain(`<host>${name}</host>`)
  })
})

const hasCompose = spawnSync('docker', ['compose', 'version'], { stdio: 'ignore' }).status === 0
if (!hasCompose) console.log('no docker compose here: the compose file is not read by it')

describe.skipIf(!hasCompose)('docker compose', () => {
  it.each([
    ['one server', [], {}],
    ['observability', ['--profile', 'observability'], {}],
    ['a cluster', ['--profile', 'cluster'], MODES['a cluster']],
  ])('accepts the file for %s', (_name, profiles, env) => {
    const args = ['compose', '-f', join(root, 'docker-compose.yml'), ...profiles, 'config', '-q']
    const { status, stderr } = spawnSync('docker', args, { env: { ...process.env, ...env }, encoding: 'utf8' })
    expect([status, stderr]).toEqual([0, ''])
  })
})
