import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { GUIDES } from '../../api/pages/guides.ts'
import { type Demo, startDemo } from '../support/demo.ts'

/** Debian's Python has the packages of Debian, regardless of the first python on the PATH. */
const python = ['python3', '/usr/bin/python3'].find(
  (program) => spawnSync(program, ['-c', 'import pandas, requests']).status === 0,
)
if (python === undefined) console.log('Python samples: skipped, there is no Python with pandas and requests')

/** Runs each program of the list on standard input, and prints the failed ones with their errors. */
const RUNNER = `
import contextlib, io, json, sys, traceback
failed = {}
for code in json.load(sys.stdin):
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(code, {})
        if not printed.getvalue().strip():
            failed[code] = "it printed nothing"
    except Exception:
        failed[code] = traceback.format_exc()
print(json.dumps(failed))
`

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
      .flatMap((page) => [...page.matchAll(/```python\n(?<code>.*?)```/gs)])
      .map(({ groups }) => (groups?.code ?? '').replaceAll(/https?:\/\/[^/"]+/g, demo.url))
      // DuckDB downloads its HTTP extension from its own site.
      .filter((code) => !code.includes('duckdb'))
    expect(samples.length).toBeGreaterThan(20)
    const child = spawn(String(python), ['-c', RUNNER], { stdio: ['pipe', 'pipe', 'inherit'] })
    child.stdin.end(JSON.stringify(samples))
    const [output] = await Promise.all([text(child.stdout), once(child, 'exit')])
    expect(JSON.parse(output)).toEqual({})
  }, 120_000)
})
