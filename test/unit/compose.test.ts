import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { CADENCES } from '../../shared/intervals.ts'

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
  hostname: z.string().optional(),
  command: z.array(z.string()).optional(),
  read_only: z.boolean().default(false),
  security_opt: z.array(z.string()).default([]),
})
const compose = z.looseObject({
  services: z.record(z.string(), service),
  volumes: z.record(z.string(), z.null()),
})

/** What compose puts in for `${NAME:-default}` and `${NAME:+instead}`. */
function interpolate(text: string, env: Readonly<Record<string, string>>): string {
  return text.replace(/\$\{(\w+)(?::([-+])([^}]*))?\}/g, (_, name, kind, word) => {
    const value = env[name] ?? ''
    if (kind === '+') return value === '' ? '' : word
    return value === '' ? (word ?? '') : value
  })
}

/** Another package's own parser: without it there is nothing to read the file with. */
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

const MODES = { 'one server': {}, 'a cluster': { CLICKHOUSE_CLUSTER: 'dao_data' } } as const

describe.skipIf(parse === undefined).each(Object.entries(MODES))('the compose file for %s', (_name, env) => {
  const { services, volumes } = compose.parse(
    parse?.(interpolate(read('docker-compose.yml'), env)) ?? { services: {}, volumes: {} },
  )
  const all = Object.entries(services)

  it('names only services, volumes and files that there are', () => {
    const used = new Set<string>()
    for (const [name, { depends_on, volumes: mounts }] of all) {
      for (const [on, { condition, required }] of Object.entries(depends_on)) {
        const other = services[on]
        expect(other, `${name} depends on ${on}`).toBeDefined()
        if (condition === 'service_healthy') expect(other?.healthcheck, `${name} waits for ${on}`).toBeDefined()
        if (required) expect(other?.profiles.every((profile) => services[name]?.profiles.includes(profile))).toBe(true)
      }
      for (const mount of mounts) {
        const [from = ''] = mount.split(':')
        if (from.startsWith('.')) expect(existsSync(join(root, from)), `${name} mounts ${from}`).toBe(true)
        else used.add(from)
      }
    }
    expect([...used].sort()).toEqual(Object.keys(volumes).sort())
  })

  it('pins images, and gives processes a health check and nothing to write to', () => {
    for (const [name, one] of all) {
      if (one.build === undefined) expect(one.image, name).toMatch(/:v?\d+\.\d+/)
      if (one.build === undefined) continue
      expect([name, one.read_only, one.security_opt]).toEqual([name, true, ['no-new-privileges:true']])
      const file = one.command?.at(-1) ?? ''
      expect(existsSync(join(root, file)), `${name} runs ${file}`).toBe(true)
      if (name !== 'migrate') expect(one.healthcheck?.test.at(-1), name).toMatch(/\/health\/ready$/)
    }
    const workers = all.filter(([name]) => name.startsWith('worker-')).map(([, one]) => one.environment.WORKER_QUEUES)
    expect(workers).toEqual(CADENCES)
  })

  it('gives each node of the cluster its place', () => {
    const topology = read('clickhouse/server/cluster-topology.xml')
    const nodes = all.filter(([, one]) => 'CLICKHOUSE_SHARD' in one.environment)
    const hosts = [...topology.matchAll(/<host>(clickhouse[\w-]*)<\/host>/g)].map(([, host]) => host)
    expect(nodes.map(([name]) => name)).toEqual(hosts)
    expect(topology).toContain('<dao_data>')
    const places = nodes.map(
      ([, { environment }]) => `${environment.CLICKHOUSE_SHARD} ${environment.CLICKHOUSE_REPLICA}`,
    )
    expect(places).toEqual(['1 1', '1 2', '2 1', '2 2'])
    const wanted = [
      ...topology.matchAll(/from_env="(\w+)"/g),
      ...read('clickhouse/server/users.xml').matchAll(/from_env="(\w+)"/g),
    ]
    for (const [name, one] of nodes) {
      for (const [, variable = ''] of wanted) expect(one.environment[variable], `${name}: ${variable}`).toBeTruthy()
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
  ])('reads the file for %s', (_name, profiles, env) => {
    const args = ['compose', '-f', join(root, 'docker-compose.yml'), ...profiles, 'config', '-q']
    const { status, stderr } = spawnSync('docker', args, { env: { ...process.env, ...env }, encoding: 'utf8' })
    expect([status, stderr]).toEqual([0, ''])
  })
})
