import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')
const HOUSES = ['api', 'workers', 'shared', 'clickhouse'] as const

const filesOf = (house: string) =>
  readdirSync(join(ROOT, house), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join(house, name))

/** The folder in a house that a file is in, as `api/lists`; undefined for what stands beside the folders. */
function toRoom(file: string): string | undefined {
  const [house = '', room, ...rest] = file.split('/')
  return rest.length === 0 ? undefined : `${house}/${room}`
}

/** Every room with those that its files import. */
function readRooms(): Map<string, Set<string>> {
  const rooms = new Map<string, Set<string>>()
  for (const file of HOUSES.flatMap(filesOf)) {
    const room = toRoom(file)
    if (room === undefined) continue
    const imported = rooms.get(room) ?? new Set()
    rooms.set(room, imported)
    for (const [, path = ''] of readFileSync(join(ROOT, file), 'utf8').matchAll(/from '(\.[^']+)'/g)) {
      const other = toRoom(relative(ROOT, resolve(ROOT, dirname(file), path)))
      if (other !== undefined && other !== room) imported.add(other)
    }
  }
  return rooms
}

describe('rooms', () => {
  it('import each other in one direction only', () => {
    const rooms = readRooms()
    // Whatever imports nothing of what is left is taken away; what then remains goes round in a circle.
    for (let before = -1; before !== rooms.size; ) {
      before = rooms.size
      for (const [room, imported] of rooms) if (![...imported].some((other) => rooms.has(other))) rooms.delete(room)
    }
    expect([...rooms].map(([room, imported]) => `${room} -> ${[...imported].filter((one) => rooms.has(one))}`)).toEqual(
      [],
    )
  })

  it('are all named where newcomers read what is where', () => {
    const page = readFileSync(join(ROOT, 'docs/development.md'), 'utf8')
    const [, list = ''] = /## Modules\n[^`]*```\n(.*?)\n```/s.exec(page) ?? []
    const told = list.split(/\n(?=\S)/).flatMap((section) => {
      const house = section.split('/', 1)[0]
      return [...section.matchAll(/([\w-]+)\//g)].map(([, room]) => `${house}/${room}`)
    })
    const unnamed = [...readRooms().keys()].filter((room) => !told.includes(room))
    expect(unnamed).toEqual([])
  })
})
