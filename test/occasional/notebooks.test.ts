import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { DuckDBInstance } from '@duckdb/node-api'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { z } from 'zod'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { createDatabase } from '../../shared/store/store.ts'
import { makePythonClient } from '../../tools/build-python-client.ts'
import { readCatalog } from '../../workers/publish/catalog.ts'
import { publish } from '../../workers/publish/publish.ts'
import { openFolder } from '../../workers/publish/target.ts'
import { createTestConfig } from '../support/database.ts'
import { DEMO_NOW, type Demo, startDemo } from '../support/demo.ts'
import { findPython, PYTHON_SOURCES, runsPython } from '../support/python.ts'
import { silent } from '../support/silent.ts'

const NOTEBOOKS = join(import.meta.dirname, '../../docs/notebooks')

const python = findPython('import pandas, matplotlib')
if (python === undefined) console.log('notebooks: skipped, there is no Python with pandas and matplotlib')
const hasEngine = python !== undefined && runsPython(python, 'import pandas.io.parquet as p; p.get_engine("auto")')
if (python !== undefined && !hasEngine)
  console.log('notebooks: pandas has no Parquet engine, so DuckDB reads the files')

/**
 * Runs the cells of a notebook in one namespace, as Jupyter does. If pandas has no Parquet engine, asks this process for the
 * values of a file: one line of JSON with its path and columns, one line with types and values.
 */
const RUNNER = `
import ast, json, os, sys, tempfile
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
import pandas as pd

cells, ask, answers = json.loads(sys.stdin.readline()), sys.stdout, sys.stdin
sys.stdout = sys.stderr

def read_parquet(source, engine="auto", columns=None, **options):
    if options:
        raise NotImplementedError(f"read_parquet with {options}")
    with tempfile.NamedTemporaryFile(suffix=".parquet") as file:
        file.write(source.read())
        file.flush()
        print(json.dumps({"path": file.name, "columns": columns}), file=ask, flush=True)
        answer = json.loads(answers.readline())
    frame = pd.DataFrame(answer["columns"])
    for name, type in answer["types"].items():
        if type.startswith("TIMESTAMP"):
            frame[name] = pd.to_datetime(frame[name], unit="ms", utc=True)
        elif type in ("DOUBLE", "FLOAT"):
            frame[name] = frame[name].astype("float64")
    return frame

if os.environ["HAS_ENGINE"] == "false":
    pd.read_parquet = read_parquet

plots = []
def show():
    for number in plt.get_fignums():
        figure = plt.figure(number)
        figure.canvas.draw()
        plots.append({"title": figure.axes[0].get_title(), "marks": sum(len(axes.lines) + len(axes.patches) + len(axes.collections) for axes in figure.axes)})
    plt.close("all")
plt.show = show

names, tables = {}, []
for number, cell in enumerate(cells):
    tree = ast.parse(cell, f"cell {number + 1}")
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, f"cell {number + 1}", "exec"), names)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), f"cell {number + 1}", "eval"), names)
        if isinstance(value, pd.DataFrame):
            tables.append(list(value.shape))
print(json.dumps({"plots": plots, "tables": tables}), file=ask, flush=True)
`

const notebook = z.object({
  nbformat: z.literal(4),
  cells: z.array(
    z.object({
      cell_type: z.enum(['markdown', 'code']),
      source: z.array(z.string()),
      outputs: z.array(z.never()).optional(),
    }),
  ),
})
const requested = z.object({ path: z.string(), columns: z.array(z.string()).nullable() })
const drawn = z.object({
  plots: z.array(z.object({ title: z.string(), marks: z.number() })),
  tables: z.array(z.tuple([z.number(), z.number()])),
})

/** The values of a Parquet file by column; times in Unix milliseconds. */
async function readColumns({ path, columns }: z.infer<typeof requested>) {
  const instance = await DuckDBInstance.create()
  const connection = await instance.connect()
  try {
    await connection.run(`SET TimeZone = 'UTC'`)
    const described = await connection.runAndReadAll(`DESCRIBE SELECT * FROM read_parquet('${path}')`)
    const types = new Map(described.getRowsJson().map(([name, type]) => [String(name), String(type)]))
    const names = columns ?? [...types.keys()]
    const toValue = (name: string) => (types.get(name)?.startsWith('TIMESTAMP') ? `epoch_ms("${name}")` : `"${name}"`)
    const sql = `SELECT ${names.map(toValue).join(', ')} FROM read_parquet('${path}')`
    const values = (await connection.runAndReadAll(sql)).getColumnsJson()
    return {
      types: Object.fromEntries(names.map((name) => [name, types.get(name)])),
      columns: Object.fromEntries(names.map((name, at) => [name, values[at]])),
    }
  } finally {
    connection.closeSync()
    instance.closeSync()
  }
}

async function runNotebook(name: string, settings: Readonly<Record<string, string>>) {
  const { cells } = notebook.parse(JSON.parse(await readFile(join(NOTEBOOKS, name), 'utf8')))
  const sources = cells.filter(({ cell_type }) => cell_type === 'code').map(({ source }) => source.join(''))
  const paths = { PYTHONPATH: PYTHON_SOURCES, PYTHONDONTWRITEBYTECODE: '1' }
  const env = { ...process.env, ...paths, ...settings, HAS_ENGINE: String(hasEngine) }
  const child = spawn(String(python), ['-c', RUNNER], { stdio: ['pipe', 'pipe', 'pipe'], env })
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text) => (errors += text))
  const exited = once(child, 'exit')
  child.stdin.write(`${JSON.stringify(sources)}\n`)
  let last: unknown
  for await (const line of createInterface({ input: child.stdout })) {
    last = JSON.parse(line)
    const question = requested.safeParse(last)
    if (question.success) child.stdin.write(`${JSON.stringify(await readColumns(question.data))}\n`)
  }
  expect([(await exited)[0], errors]).toEqual([0, expect.not.stringContaining('Traceback')])
  return drawn.parse(last)
}

describe.skipIf(python === undefined)('notebooks over the publication of the demo', () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'dao-data-notebooks-'))
    await (await startDemo()).close()
    const config = createTestConfig({ CLICKHOUSE_DATABASE: inject('stores').demo, DAO_DATA_MODE: 'demo' })
    const db = createDatabase(config.clickhouse, 'write')
    const options = { db, registry: loadRegistry(), keepDays: 7, publicUrl: 'http://localhost:3000', log: silent }
    await publish({ ...options, target: openFolder(db, folder), now: () => DEMO_NOW })
    await db.close()
  }, 900_000)
  afterAll(() => rm(folder, { recursive: true, force: true }))

  it('are committed without outputs', async () => {
    for (const name of await readdir(NOTEBOOKS)) {
      const { cells } = notebook.parse(JSON.parse(await readFile(join(NOTEBOOKS, name), 'utf8')))
      expect(cells.length, name).toBeGreaterThan(0)
    }
  })

  it('draw three plots from the published files', async () => {
    const { plots, tables } = await runNotebook('publication.ipynb', { PUBLISHED: folder })
    expect(plots.map(({ title }) => title)).toEqual([
      'Largest tokens, first day = 100',
      'Largest treasuries, million USD',
      'Power of the ten strongest voters, percent',
    ])
    const [prices, treasuries, votes] = plots.map(({ marks }) => marks)
    expect([prices, treasuries]).toEqual([6, 30])
    expect(votes).toBeGreaterThan(0)
    const catalog = await readCatalog(openFolder(undefined, folder))
    expect(tables[0]?.[0]).toBe(catalog?.datasets.length)
  })
})

/** Questions to a running service, with the Python client. */
describe.skipIf(python === undefined)('notebooks over the API of the demo', () => {
  let demo: Demo
  beforeAll(async () => {
    makePythonClient()
    demo = await startDemo()
  })
  afterAll(() => demo?.close())

  // The demo of the tests has prices of a week.
  const run = (name: string) => runNotebook(name, { DAO_DATA_URL: demo.url, START: '2026-05-01' })

  it('compare the power of delegates with their votes', async () => {
    const { plots, tables } = await run('delegates.ipynb')
    expect(plots.map(({ title }) => title)).toEqual([
      'Largest delegates of Uniswap, percent of the delegated power',
      expect.stringMatching(/^Power of 0x[0-9a-f]{6}, million votes$/),
    ])
    expect(plots[0]?.marks).toBe(15)
    expect(tables).toEqual([
      [5, 9],
      [4, 2],
      [expect.any(Number), 2],
    ])
  })

  it('split treasuries by kind of asset', async () => {
    const { plots, tables } = await run('treasuries.ipynb')
    expect(plots.map(({ marks }) => marks)).toEqual([36, 11, 2])
    expect(tables[0]).toEqual([10, 4])
  })

  it('compare the Index with baskets', async () => {
    const { plots, tables } = await run('index-and-baskets.ipynb')
    expect(plots.map(({ title, marks }) => [title, marks])).toEqual([
      ['Baskets, first day = 100', 3],
      ['The Index and its weights of today, first day = 100', 2],
    ])
    expect(tables.slice(1)).toEqual([
      [1, 3],
      [3, 3],
    ])
  })
})
