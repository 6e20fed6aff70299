import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createSupervisor, type Supervisor } from '../../tools/supervisor.ts'

let folder: string
let supervisor: Supervisor
let said: string[]
let lost: string[]
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dao-data-supervisor-'))
  ;[said, lost] = [[], []]
  const log = { say: (line: string) => void said.push(line), onLost: (reason: string) => void lost.push(reason) }
  supervisor = createSupervisor({ ...log, pausesMs: [1, 2, 3], aliveMs: 600_000 })
})
afterEach(async () => {
  await supervisor.stop()
  await rm(folder, { recursive: true, force: true })
})

const WAIT = { timeout: 60_000 }

/** A program that records each of its starts, and a supervised process that runs it. */
async function createPart(program: string) {
  const file = join(folder, 'part.ts')
  const starts = join(folder, 'starts')
  await writeFile(file, `import { appendFileSync } from 'node:fs'\nappendFileSync('${starts}', 'x')\n${program}`)
  return { part: { name: 'part', file }, countStarts: async () => (await readFile(starts, 'utf8')).length }
}

const READY = `console.log(JSON.stringify({ ready: true, pid: process.pid }));`

it('supervisor restarts a process and logs it', async () => {
  const { part, countStarts } = await createPart(`${READY} setInterval(() => {}, 1000)`)
  const { pid } = await supervisor.start(part)
  process.kill(Number(pid), 'SIGKILL')
  await expect.poll(() => said, WAIT).toEqual(['part ended with SIGKILL: it is restarted in 0.001 s', 'part is back'])
  expect([await countStarts(), lost]).toEqual([2, []])
})

it('supervisor stops one process, which can be started again', async () => {
  const { part, countStarts } = await createPart(`${READY} setInterval(() => {}, 1000)`)
  const { pid } = await supervisor.start(part)
  await supervisor.end(part)
  expect(() => process.kill(Number(pid), 0)).toThrow('ESRCH')
  const repeated = await supervisor.start(part)
  process.kill(Number(repeated.pid), 'SIGKILL')
  await expect.poll(() => said, WAIT).toContain('part is back')
  expect([await countStarts(), said.length, lost]).toEqual([3, 2, []])
})

it('supervisor kills a process that does not exit', async () => {
  const { part } = await createPart(
    `process.on('SIGTERM', () => { while (true); }); ${READY} setInterval(() => {}, 1000)`,
  )
  const say = (line: string) => void said.push(line)
  const hasty = createSupervisor({ say, onLost: say, killedAfterMs: 100 })
  const { pid } = await hasty.start(part)
  await hasty.stop()
  expect(() => process.kill(Number(pid), 0)).toThrow('ESRCH')
  expect(said).toEqual(['part did not end within 0.1 s: it is killed'])
})

it('supervisor gives up when a process keeps failing, and logs its last output', async () => {
  const { part, countStarts } = await createPart(
    `${READY} console.error('no use'); setTimeout(() => process.exit(3), 50)`,
  )
  await supervisor.start(part)
  await expect
    .poll(() => lost, WAIT)
    .toEqual(['part ended with code 3 for the 4th time in a row: its last output was\nno use'])
  expect(await countStarts()).toBe(4)
})

it('supervisor rejects a process that was never ready', async () => {
  const { part } = await createPart('process.exit(4)')
  await expect(supervisor.start(part)).rejects.toThrow('part ended with code 4 before it was ready')
  expect([said, lost]).toEqual([[], []])
})

it('supervisor restarts a process when its full disk has room again, regardless of earlier failures', async () => {
  let fault: string | undefined
  const { part, countStarts } = await createPart(`${READY} setInterval(() => {}, 1000)`)
  const say = (line: string) => void said.push(line)
  const looks: number[] = []
  const patient = createSupervisor({
    ...{ say, onLost: (reason) => void lost.push(reason), pausesMs: [], pollMs: 1 },
    findFault: () => {
      looks.push(1)
      return fault
    },
  })
  const { pid } = await patient.start(part)
  fault = 'the disk of /data is full'
  process.kill(Number(pid), 'SIGKILL')
  await expect.poll(() => looks.length, WAIT).toBeGreaterThan(10)
  expect([said, await countStarts()]).toEqual([
    ['part ended with SIGKILL: the disk of /data is full: it is restarted when it can write there'],
    1,
  ])
  fault = undefined
  await expect.poll(() => said, WAIT).toContain('part is back')
  expect([await countStarts(), lost]).toEqual([2, []])
  await patient.stop()
})
