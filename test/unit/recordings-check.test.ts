import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { checkAll, RECORDINGS, toCheckReport } from '../../workers/commands/replay-check.ts'
import type { Job } from '../../workers/job/define-job.ts'
import holders from '../../workers/jobs/holders.ts'
import { checkRecordings } from '../../workers/run/runner.ts'
import { silent } from '../support/silent.ts'

const folders: string[] = []
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

/** A copy of the recordings, to change it. */
function copyRecordings(): string {
  const folder = mkdtempSync(join(tmpdir(), 'dao-data-recordings-'))
  folders.push(folder)
  cpSync(RECORDINGS, folder, { recursive: true })
  return folder
}

const checkHolders = (change: (rows: object[]) => object[]) => {
  const job: Job = {
    ...holders,
    connect: (context) =>
      holders.connect(context).map((one) => ({ ...one, collect: async (run) => change(await one.collect(run)) })),
  }
  return checkRecordings({
    ...{ folder: RECORDINGS, dataDir: RECORDINGS, jobs: [job], isWanted: (name) => name === 'holders' },
    ...{ accepts: false, log: silent },
  })
}

describe('recorded answers of providers', () => {
  it('are decoded to the accepted rows', async () => {
    const result = await checkAll({ datasets: [], folder: RECORDINGS, accepts: false })
    expect(toCheckReport(result)).toMatch(/(^|\n)\d+ recordings, \d+ rows: 0 added, 0 changed, 0 removed$/)
    expect(result.recordings.length).toBeGreaterThan(20)
    expect(result.recordings.reduce((sum, { rows }) => sum + rows, 0)).toBeGreaterThan(1_000)
  })
})

describe('check of recordings', () => {
  it('reports a member that a decoder changes', async () => {
    const result = await checkHolders((rows) => rows.map((row) => ({ ...row, total_holders: 123_456_789 })))
    const report = toCheckReport(result)
    expect(report).toMatch(
      /^stand-in\/holders-slot +changed +\d+ +2024-05-06T07:00:00\.000Z +total_holders: \d+ -> 123456789$/m,
    )
    expect(report).toMatch(/\n1 recordings, 2 rows: 0 added, 2 changed, 0 removed$/)
  })

  it('reports a row that a decoder loses, and one that it adds', async () => {
    const lost = await checkHolders((rows) => rows.slice(1))
    expect(toCheckReport(lost)).toMatch(/: 0 added, 0 changed, 1 removed, 1 failed$/)
    // The next provider is requested for the token, which the run did not do.
    expect(toCheckReport(lost)).toMatch(/ethplorer: GET .* sends other requests than the run did/)
    const moved = await checkHolders((rows) => rows.map((row) => ({ ...row, observed_at: '2024-05-06T06:59:00.000Z' })))
    expect(toCheckReport(moved)).toMatch(/: 2 added, 0 changed, 2 removed$/)
  })

  it('reports a decoder that fails, with its reason', async () => {
    const result = await checkHolders(() => {
      throw new TypeError('no such member')
    })
    expect(toCheckReport(result)).toMatch(/^stand-in\/holders-slot +failed .*no such member/m)
    expect(toCheckReport(result)).toMatch(/, 1 failed$/)
  })

  it('writes the rows of today if they are accepted', async () => {
    const folder = copyRecordings()
    const file = join(folder, 'stand-in/twitter-slot.rows.jsonl')
    const accepted = readFileSync(file, 'utf8')
    writeFileSync(file, accepted.split('\n').slice(1).join('\n'))
    const request = { datasets: ['twitter'], folder }
    expect(toCheckReport(await checkAll({ ...request, accepts: false }))).toMatch(/: 1 added, 0 changed, 0 removed$/)
    await checkAll({ ...request, accepts: true })
    expect(readFileSync(file, 'utf8')).toBe(accepted)
    expect(toCheckReport(await checkAll({ ...request, accepts: false }))).toMatch(/: 0 added, 0 changed, 0 removed$/)
  })

  it('names an unknown dataset and a folder without recordings', async () => {
    expect(() => checkAll({ datasets: ['holder'], folder: RECORDINGS, accepts: false })).toThrow(
      /^holder: no such dataset; there are prices, /,
    )
    const empty = mkdtempSync(join(tmpdir(), 'dao-data-recordings-'))
    folders.push(empty)
    await expect(checkAll({ datasets: [], folder: empty, accepts: false })).rejects.toThrow('no folder in it has a')
  })
})
