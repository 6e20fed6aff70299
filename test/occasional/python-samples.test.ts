import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { GUIDES } from '../../api/pages/guides.ts'
import { type Demo, startDemo } from '../support/demo.ts'
import { findPython, runPrograms, toPythonSamples } from '../support/python.ts'

const python = findPython('import pandas, requests')
if (python === undefined) console.log('Python samples: skipped, there is no Python with pandas and requests')

describe.skipIf(python === undefined)('Python samples of the documentation', () => {
  let demo: Demo
  beforeAll(async () => {
    demo = await startDemo()
  })
  afterAll(() => demo?.close())

  it('run without errors', async () => {
    const pages = ['/reference.md', ...GUIDES.map(({ name }) => `/guides/${name}.md`)]
    const texts = await Promise.all(pages.map(async (page) => (await fetch(demo.url + page)).text()))
    const samples = texts
      .flatMap((page) => toPythonSamples(page, demo.url))
      // DuckDB downloads its HTTP extension from its own site, and a hash is that of an answer which one service has stored.
      .filter((code) => !code.includes('duckdb') && !code.includes('/data/provenance/raw'))
    expect(samples.length).toBeGreaterThan(20)
    const results = await runPrograms(String(python), samples)
    const failed = results.flatMap(({ printed, error }, at) => {
      const reason = error ?? (printed.trim() === '' ? 'it printed nothing' : undefined)
      return reason === undefined ? [] : [[samples[at], reason]]
    })
    expect(failed).toEqual([])
  }, 120_000)
})
