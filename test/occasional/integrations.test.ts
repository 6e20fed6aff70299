import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { makePythonClient } from '../../tools/build-python-client.ts'
import { DEMO_NOW, type Demo, startDemo } from '../support/demo.ts'
import { findPython, PYTHON_SOURCES, runPython } from '../support/python.ts'

const FOLDER = join(import.meta.dirname, '../../integrations')
const read = (file: string) => readFileSync(join(FOLDER, file), 'utf8')

const python = findPython('import pandas')
if (python === undefined) console.log('integrations: dlt and Quarto are skipped, there is no Python with pandas')

let demo: Demo
beforeAll(async () => {
  makePythonClient()
  demo = await startDemo()
})
afterAll(() => demo?.close())

/** The records at a path of an answer, as Infinity selects them. */
const select = (body: unknown, path: string): unknown =>
  path
    .split('.')
    .filter(Boolean)
    .reduce<unknown>((value, key) => Reflect.get(Object(value), key), body)

it('Grafana: each panel gets rows with its columns from the demo', async () => {
  const { panels } = z
    .object({
      panels: z.array(
        z.object({
          title: z.string(),
          targets: z.array(
            z.object({
              url: z.string(),
              root_selector: z.string(),
              columns: z.array(z.object({ selector: z.string() })),
            }),
          ),
        }),
      ),
    })
    .parse(JSON.parse(read('grafana/provisioning/dashboards/dao-data.json')))
  const macros = { __from: DEMO_NOW - 6 * 86_400_000, __to: DEMO_NOW, token: 'Uniswap' }
  for (const { title, targets } of panels)
    for (const { url, root_selector, columns } of targets) {
      const address = url.replaceAll(/\$\{(\w+)[^}]*\}/g, (_, name: keyof typeof macros) => String(macros[name]))
      const response = await fetch(demo.url + address)
      expect(response.status, address).toBe(200)
      const rows = select(await response.json(), root_selector) as object[]
      expect(rows.length, title).toBeGreaterThan(0)
      for (const { selector } of columns) expect(select(rows[0], selector), `${title} ${selector}`).toBeDefined()
    }
})

describe.skipIf(python === undefined)('dlt configuration', () => {
  const endpoint = z.strictObject({
    path: z.string(),
    params: z.record(z.string(), z.union([z.string(), z.number()])),
    paginator: z.strictObject({ type: z.enum(['header_link', 'single_page']) }),
    incremental: z.strictObject({ cursor_path: z.string(), initial_value: z.string() }).optional(),
    response_actions: z.array(z.strictObject({ status_code: z.int(), action: z.literal('ignore') })).optional(),
  })
  const config = z.strictObject({
    client: z.strictObject({ base_url: z.string() }),
    resource_defaults: z.strictObject({
      primary_key: z.string(),
      write_disposition: z.enum(['replace', 'append', 'merge']),
    }),
    resources: z.array(
      z.strictObject({
        name: z.string(),
        primary_key: z.string().optional(),
        write_disposition: z.enum(['replace', 'append', 'merge']).optional(),
        endpoint,
      }),
    ),
  })
  type Endpoint = z.infer<typeof endpoint>

  /** Reads all pages as dlt's paginators do: `header_link` requests the next address of the `Link` header. */
  async function readAll({
    path,
    params,
    paginator,
    response_actions = [],
  }: Endpoint): Promise<Record<string, unknown>[]> {
    let next: URL | undefined = new URL(path, demo.url)
    for (const [name, value] of Object.entries(params)) next.searchParams.set(name, String(value))
    const rows: Record<string, unknown>[] = []
    while (next !== undefined) {
      const response: Response = await fetch(next)
      if (response_actions.some(({ status_code }) => status_code === response.status)) return []
      expect(response.status, next.href).toBe(200)
      rows.push(...((await response.json()) as Record<string, unknown>[]))
      const link: string | undefined = /<([^>]+)>;\s*rel="next"/.exec(response.headers.get('link') ?? '')?.[1]
      next = link === undefined || paginator.type === 'single_page' ? undefined : new URL(link, next)
    }
    return rows
  }

  it('loads each resource with its key, page by page', async () => {
    const code = `import json, runpy\nprint(json.dumps(runpy.run_path(${JSON.stringify(join(FOLDER, 'dlt/dao_data_pipeline.py'))})["CONFIG"]))`
    const { resources, resource_defaults } = config.parse(JSON.parse(await runPython(String(python), code)))
    const loaded = new Map<string, Record<string, unknown>[]>()
    for (const { name, endpoint: one, primary_key = resource_defaults.primary_key } of resources) {
      const parents = loaded.get(/\{resources\.(\w+)\./.exec(JSON.stringify(one.params))?.[1] ?? '')?.slice(0, 3) ?? [
        {},
      ]
      const rows: Record<string, unknown>[] = []
      for (const parent of parents) {
        const params = Object.fromEntries(
          Object.entries(one.params).map(([key, value]) => [
            key,
            String(value)
              .replace(/\{resources\.\w+\.(\w+)\}/, (_, member: string) => String(parent[member]))
              .replace('{incremental.start_value}', one.incremental?.initial_value ?? ''),
          ]),
        )
        // Small pages, so that there are several.
        rows.push(
          ...(await readAll({
            ...one,
            params: one.paginator.type === 'header_link' ? { ...params, limit: 25 } : params,
          })),
        )
      }
      expect(rows.length, name).toBeGreaterThan(0)
      expect(new Set(rows.map((row) => row[primary_key])).size, name).toBe(rows.length)
      if (one.incremental !== undefined) expect(rows[0], name).toHaveProperty(one.incremental.cursor_path)
      loaded.set(name, rows)
    }
    expect(loaded.get('tokens')?.length).toBeGreaterThan(50)
  })
})

it.skipIf(python === undefined)(
  'Quarto: the cells in Python run, and the cell in JavaScript reads members that exist',
  async () => {
    const page = read('quarto/treasuries.qmd')
    const cells = [...page.matchAll(/```\{python\}\n(?<code>.*?)```/gs)].map(({ groups }) => groups?.code ?? '')
    const output = await runPython(String(python), cells.join('\n'), '', {
      PYTHONPATH: PYTHON_SOURCES,
      DAO_DATA_URL: demo.url,
    })
    expect(output).toContain('treasuryData_valueUsd')
    const [, path = ''] = /fetch\("http:\/\/127\.0\.0\.1:3000([^"]+)"\)/.exec(page) ?? []
    const [first] = (await (await fetch(demo.url + path)).json()) as object[]
    for (const [, member] of page.matchAll(/\bd\.([\w.]+)/g)) expect(select(first, String(member))).toBeDefined()
  },
)
