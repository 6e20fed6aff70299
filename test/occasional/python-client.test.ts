import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { routes } from '../../api/routes.ts'
import { buildPythonClient, findBuildPython, makePythonClient } from '../../tools/build-python-client.ts'
import { toPythonName } from '../../tools/python-types.ts'
import { createBusyStream } from '../support/busy-stream.ts'
import { type Demo, startDemo } from '../support/demo.ts'
import { toFirstQuery } from '../support/documented.ts'
import { findPython, PYTHON_SOURCES, runPrograms, runPython, runsPython, toPythonSamples } from '../support/python.ts'

const python = findPython('import pandas')
const builder = findBuildPython()
/** A Python that creates environments with pip. */
const installer = findPython('import ensurepip')
const checker = findPython('import mypy')
if (python === undefined) console.log('Python client: skipped, there is no Python with pandas')
const hasArrow = python !== undefined && runsPython(python, 'import pyarrow')
if (python !== undefined && !hasArrow)
  console.log('Python client: there is no pyarrow, so tables are read as CSV, and not compared with Parquet')
if (builder === undefined)
  console.log('Python client: no wheel is built, there is no Python with pip, setuptools and wheel')
if (checker === undefined) console.log('Python client: its types are not checked, there is no mypy')

const CLIENT = join(PYTHON_SOURCES, '..')
const README = readFileSync(join(CLIENT, 'README.md'), 'utf8')

/** The arguments of a call in Python. */
const toArguments = (query: Readonly<Record<string, unknown>>) =>
  Object.entries(query)
    .map(([name, value]) => `${toPythonName(name)}=${JSON.stringify(value)}`)
    .join(', ')

/** A query of every operation except streams; the demo does not serve the answers of providers. */
const queries = routes
  .filter(({ isEndless, mediaType }) => !isEndless && mediaType !== 'application/octet-stream')
  .map((route) => {
    const call = `api.${route.tag.toLowerCase()}.${toPythonName(route.operation)}(${toArguments(toFirstQuery(route))})`
    return { call, isTable: route.record !== undefined }
  })
const tables = queries.filter(({ isTable }) => isTable).map(({ call }) => call)

const changeStream = createBusyStream()
let demo: Demo
/** The statements that create the client in a program. */
let start: string
let folder: string

const runDemo = (code: string) => runPython(String(python), start + code)

beforeAll(async () => {
  makePythonClient()
  folder = mkdtempSync(join(tmpdir(), 'dao-data-python-'))
  if (python === undefined) return
  demo = await startDemo({ changeStream })
  start = `import json
from dao_data_client import DaoData
api = DaoData(${JSON.stringify(demo.url)})
`
})
afterAll(async () => {
  await demo?.close()
  changeStream.close()
  if (folder !== undefined) rmSync(folder, { recursive: true })
})

describe.skipIf(python === undefined)('Python client', () => {
  it('runs all programs of its guide', async () => {
    const programs = toPythonSamples(README, demo.url)
    expect(programs.length).toBeGreaterThanOrEqual(10)
    const results = await runPrograms(String(python), programs)
    const failed = results.map(({ printed, error }, at) => ({ at, printed, error }))
    expect(failed.filter(({ printed, error }) => error !== null || printed.trim() === '')).toEqual([])
  })

  it('calls every operation, with the same answer as the service', async () => {
    const bodies = `[${queries.map(({ call }) => call).join(',\n')}]`
    const output = await runDemo(`print(json.dumps([[query.url(), query.get()] for query in ${bodies}]))`)
    const answers: [string, unknown][] = JSON.parse(output)
    expect(answers.length).toBe(queries.length)
    const volatile = routes.filter((route) => route.volatile).map(({ path }) => path)
    for (const [url, body] of answers) {
      const response = await fetch(url)
      const isJson = response.headers.get('content-type')?.includes('json')
      const expected = isJson ? await response.json() : await response.text()
      if (!volatile.includes(new URL(url).pathname)) expect(body, url).toEqual(expected)
    }
  })

  it('reads every table with declared columns', async () => {
    const output = await runDemo(`
for query in [${tables.join(',\n')}]:
    frame = query.to_pandas()
    print(json.dumps([query.url(), len(frame), [[name, str(frame[name].dtype)] for name in frame.columns]]))
`)
    const frames: [string, number, [string, string][]][] = output
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(frames.length).toBe(tables.length)
    const prices = frames.find(([url]) => url.includes('historic-financial'))
    expect(prices?.[1]).toBeGreaterThan(0)
    expect(Object.fromEntries(prices?.[2] ?? [])).toMatchObject({
      timestamp: 'datetime64[ns, UTC]',
      quote_USD_price: 'float64',
      quote_USD_market_cap: 'float64',
    })
  })

  it.skipIf(!hasArrow)('gives the same data frames from Parquet and CSV', async () => {
    const output = await runDemo(`
import pandas
from dao_data_client import tables
for query in [${tables.join(',\n')}]:
    parquet = query.to_pandas()
    tables.has_pyarrow = lambda: False
    csv = query.to_pandas()
    tables.has_pyarrow = lambda: True
    pandas.testing.assert_frame_equal(parquet, csv)
    print(len(csv))
`)
    expect(output.trim().split('\n').length).toBe(tables.length)
  })

  it('reads all pages without a limit, and one answer with it', async () => {
    const output = await runDemo(`
query = api.daos.list_dao_votes(name="Uniswap")
several = [len(page) for page in query.pages(size=500)]
records = list(query)
print(json.dumps({
    "total": query.answer().facts.total,
    "pages": several,
    "records": len({record["_id"] for record in records}),
    "rows": len(query.to_pandas()),
    "limited": [len(list(api.tokens.list_tokens(limit=3))), len(api.tokens.list_tokens(limit=3).to_pandas())],
    "unlimited": [len(list(api.tokens.list_tokens())), len(api.tokens.list_tokens().to_pandas())],
    "tokens": api.tokens.list_tokens().answer().facts.total,
}))
`)
    const { total, pages, records, rows, limited, unlimited, tokens } = JSON.parse(output)
    expect(pages.length).toBeGreaterThan(2)
    expect([pages.reduce((sum: number, size: number) => sum + size, 0), records, rows]).toEqual([total, total, total])
    expect([limited, unlimited]).toEqual([
      [3, 3],
      [tokens, tokens],
    ])
  })
})

describe.skipIf(checker === undefined)('types of the Python client', () => {
  const check = (...args: readonly string[]) => {
    const options = ['--strict', '--ignore-missing-imports', '--no-error-summary', '--cache-dir', join(folder, 'mypy')]
    const { status, stdout, stderr } = spawnSync(String(checker), ['-m', 'mypy', ...options, ...args], {
      cwd: folder,
      encoding: 'utf8',
      env: { ...process.env, MYPYPATH: PYTHON_SOURCES },
    })
    return { status, output: stdout + stderr }
  }

  it('are complete with mypy --strict, in its guide too', () => {
    const programs = toPythonSamples(README, 'http://127.0.0.1:3000').map((code, at) => {
      const file = join(folder, `guide_${at}.py`)
      writeFileSync(file, code)
      return file
    })
    expect(check(...programs)).toEqual({ status: 0, output: '' })
    expect(check('-p', 'dao_data_client')).toEqual({ status: 0, output: '' })
  })

  it('distinguish filled series, unknown numbers and wrong parameters', () => {
    const file = join(folder, 'checked.py')
    writeFileSync(
      file,
      `from dao_data_client import DaoData
api = DaoData("http://127.0.0.1:3000")
for token in api.tokens.list_tokens(include="source"):
    reveal_type(token["financialData"]["price"])
    reveal_type(token["financialData"]["marketCap"])
    reveal_type(token["source"])
reveal_type(api.tokens.get_token_price_history(start="2026-01-01").get()["data"][0]["quote"]["USD"]["price"])
reveal_type(api.tokens.get_token_price_history(start="2026-01-01", fill="null").get()["data"][0]["quote"]["USD"]["price"])
api.tokens.list_tokens(symbol="UNI")
api.tokens.get_token_price_history(name="Uniswap", interval="2d", start="2026-01-01")
`,
    )
    const { output } = check(file)
    const lines = output.trim().split('\n')
    expect(lines.slice(0, 5).map((line) => /type is "(.*)"/.exec(line)?.[1])).toEqual([
      expect.stringMatching(/^(builtins\.)?float$/),
      expect.stringMatching(/float.*None/),
      expect.stringMatching(/str.*None/),
      expect.stringMatching(/^(builtins\.)?float$/),
      expect.stringMatching(/float.*None/),
    ])
    expect(output).toContain('Unexpected keyword argument "symbol"')
    expect(output).toMatch(/checked\.py:10: error: .*overload/)
  })
})

describe.skipIf(builder === undefined || installer === undefined || python === undefined)(
  'wheel of the Python client',
  () => {
    it('is installed in an empty environment without a network, where the first program runs', async () => {
      buildPythonClient(folder, String(builder))
      const wheel = readdirSync(folder).find((name) => name.endsWith('.whl'))
      const { version } = JSON.parse(readFileSync(join(CLIENT, '../../package.json'), 'utf8'))
      expect(wheel).toBe(`dao_data_client-${version}-py3-none-any.whl`)
      const environment = join(folder, 'environment')
      const run = (program: string, ...args: readonly string[]) => {
        const { status, stdout, stderr } = spawnSync(program, args, { cwd: folder, encoding: 'utf8' })
        expect(status, stdout + stderr).toBe(0)
        return stdout
      }
      run(String(installer), '-m', 'venv', environment)
      const installed = join(environment, 'bin/python')
      run(installed, '-m', 'pip', 'install', '--no-index', '--quiet', join(folder, String(wheel)))
      const [first = ''] = toPythonSamples(README, demo.url)
      const origin = 'import dao_data_client; print(dao_data_client.__file__)\n'
      const lines = (await runPython(installed, origin + first, '', {})).split('\n')
      expect(lines[0]).toContain(environment)
      expect(lines[1]).toMatch(/^Uniswap \d+\.\d+ \d+/)
      const packages = run(installed, '-m', 'pip', 'list', '--format', 'freeze')
      expect(packages.split('\n').filter((line) => /^(dao-data|pandas|pyarrow)/.test(line))).toEqual([
        `dao-data-client==${version}`,
      ])
    })
  },
)
