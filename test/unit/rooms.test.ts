import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { remembering } from '../../shared/intervals.ts'

const ROOT = join(import.meta.dirname, '../..')
const HOUSES = ['api', 'workers', 'shared', 'clickhouse'] as const
/** Further folders that use the modules. */
const USERS = ['tools', 'web'] as const

const filesOf = (house: string) =>
  readdirSync(join(ROOT, house), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => join(house, name))

/** Returns the module folder of a file, like `api/lists`; undefined for files outside module folders. */
function toRoom(file: string): string | undefined {
  const [house = '', room, ...rest] = file.split('/')
  return rest.length === 0 ? undefined : `${house}/${room}`
}

/** Modules that other modules import through one file only. */
const INTERFACES = [
  'api/admission/admission.ts',
  'api/cache/cache.ts',
  'api/formats/formats.ts',
  'api/lists/lists.ts',
  'api/single-flight/single-flight.ts',
  'shared/ledger/ledger.ts',
  'shared/store/store.ts',
  'workers/alerts/alerts.ts',
  'workers/http/client.ts',
  'workers/publish/daily.ts',
  'workers/run/runner.ts',
]

/** Tests of two modules together: coverage of the files that a publication writes, and of the answers of a run. */
const TESTS_OF_TWO_MODULES = ['test/support/published.ts', 'test/unit/range-coverage.test.ts']

/** The files of a folder, each with the files that it imports. */
const importsOf = remembering((house: string) =>
  filesOf(house).map((file) => {
    const imports = [...readFileSync(join(ROOT, file), 'utf8').matchAll(/(?:from |import\()'(\.[^']+)'/g)]
    return { file, imported: imports.map(([, path = '']) => relative(ROOT, resolve(ROOT, dirname(file), path))) }
  }),
)

/** The files of the product, each with the files that it imports. */
const readImports = (houses: readonly string[] = HOUSES) => houses.flatMap(importsOf)

/** Returns every module with the modules it imports. */
function readRooms(): Map<string, Set<string>> {
  const rooms = new Map<string, Set<string>>()
  for (const { file, imported: files } of readImports()) {
    const room = toRoom(file)
    if (room === undefined) continue
    const imported = rooms.get(room) ?? new Set()
    rooms.set(room, imported)
    for (const second of files.map(toRoom)) if (second !== undefined && second !== room) imported.add(second)
  }
  return rooms
}

/** Repeatedly removes nodes that import no remaining node. The rest forms cycles, or imports them. */
function findCycles(imports: Map<string, ReadonlySet<string>>): string[] {
  for (let before = -1; before !== imports.size; ) {
    before = imports.size
    for (const [one, imported] of imports) if (![...imported].some((second) => imports.has(second))) imports.delete(one)
  }
  return [...imports].map(([one, imported]) => `${one} -> ${[...imported].filter((second) => imports.has(second))}`)
}

describe('modules', () => {
  it('have no import cycles', () => {
    expect(findCycles(readRooms())).toEqual([])
  })

  it('have no import cycles of their files, imports of types included', () => {
    const files = readImports([...HOUSES, ...USERS])
    expect(files.length).toBeGreaterThan(500)
    expect(findCycles(new Map(files.map(({ file, imported }) => [file, new Set(imported)])))).toEqual([])
  })

  it.each(INTERFACES)('import of the module of %s only that file', (entry) => {
    const room = toRoom(entry)
    const restOfAll = readImports([...HOUSES, ...USERS]).filter(({ file }) => toRoom(file) !== room)
    const inside = restOfAll.flatMap(({ file, imported }) =>
      imported.filter((one) => toRoom(one) === room && one !== entry).map((one) => `${file} -> ${one}`),
    )
    expect(inside).toEqual([])
    expect(restOfAll.some(({ imported }) => imported.includes(entry))).toBe(true)
  })

  it.each(INTERFACES)('that have the interface %s do not import it themselves', (entry) => {
    const room = toRoom(entry)
    const own = readImports().filter(({ file, imported }) => toRoom(file) === room && imported.includes(entry))
    expect(own.map(({ file }) => file)).toEqual([])
  })

  it('have tests that import inner files of one module only', () => {
    const entries = new Map(INTERFACES.map((entry) => [toRoom(entry), entry]))
    const isInner = (path: string) => entries.get(toRoom(path)) !== undefined && !INTERFACES.includes(path)
    const tests = readImports(['test'])
    const tested = tests.map(({ file, imported }) => ({ file, rooms: new Set(imported.filter(isInner).map(toRoom)) }))
    expect(tested.filter(({ rooms }) => rooms.size === 1).length).toBeGreaterThan(30)
    const ofSeveral = tested.filter(({ rooms }) => rooms.size > 1).map(({ file }) => file)
    expect(ofSeveral.sort()).toEqual(TESTS_OF_TWO_MODULES)
  })

  it('of workers and of the API do not import each other', () => {
    const toOther = (house: string, other: string) =>
      readImports([house]).filter(({ imported }) => imported.some((one) => one.startsWith(`${other}/`)))
    expect([...toOther('api', 'workers'), ...toOther('workers', 'api')].map(({ file }) => file)).toEqual([])
  })

  it('are all listed in docs/development.md', () => {
    const page = readFileSync(join(ROOT, 'docs/development.md'), 'utf8')
    const [, list = ''] = /## Modules\n[^`]*```\n(.*?)\n```/s.exec(page) ?? []
    const observed = list.split(/\n(?=\S)/).flatMap((section) => {
      const house = section.split('/', 1)[0]
      return [...section.matchAll(/([\w-]+)\//g)].map(([, room]) => `${house}/${room}`)
    })
    const unnamed = [...readRooms().keys()].filter((room) => !observed.includes(room))
    expect(unnamed).toEqual([])
  })
})

it('tests replace only modules that exist', () => {
  const tests = filesOf('test').filter((file) => file.endsWith('.test.ts'))
  const replaced = tests.flatMap((file) =>
    [...readFileSync(join(ROOT, file), 'utf8').matchAll(/vi\.mock\('(\.[^']+)'/g)].map(([, path = '']) =>
      relative(ROOT, resolve(ROOT, dirname(file), path)),
    ),
  )
  expect(replaced.length).toBeGreaterThan(0)
  expect(replaced.filter((path) => !existsSync(join(ROOT, path)))).toEqual([])
})
