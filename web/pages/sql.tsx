import { useEffect, useRef, useState } from 'preact/hooks'
import { toCounted, toSize } from '../format.ts'
import { Card } from '../parts/card.tsx'
import { Chart } from '../parts/chart.tsx'
import { useCopying } from '../parts/copying.ts'
import { RecordTable } from '../parts/record-table.tsx'
import { TimeValue } from '../parts/value.tsx'
import { go, query, toAbsolute, withQuery } from '../place.ts'
import type { Engine } from '../sql/engine.ts'
import { type Cell, isNumberColumn, MOST_ROWS, type Result, toCsv, toLine } from '../sql/result.ts'
import { type Catalog, type PublishedDataset, QUESTIONS, toViewName } from '../sql/views.ts'
import '../styles/sql.css'

/** Rows in the table; the CSV has all rows that were read. */
const MOST_SHOWN = 1_000

/** Size of DuckDB on its way to the browser, in megabytes; a test compares it. */
const ENGINE_MB = 8

/** Imported on demand: the code of the engine has 200 kB, most of it DuckDB's interface. */
const startEngine = async (catalog: Catalog) => (await import('../sql/engine.ts')).startEngine(catalog)

type Published =
  | { readonly state: 'loading' }
  | { readonly state: 'none' }
  | { readonly state: 'failed'; readonly reason: string }
  | { readonly state: 'published'; readonly catalog: Catalog }

const toReason = (error: unknown) => (error instanceof Error ? error.message : String(error))

async function fetchCatalog(signal: AbortSignal): Promise<Published> {
  const response = await fetch(toAbsolute('published/catalog.json'), { signal })
  if (response.status === 404) return { state: 'none' }
  if (!response.ok) return { state: 'failed', reason: `The service answered ${response.status}.` }
  const catalog = (await response.json()) as Catalog
  if (catalog.format === 1) return { state: 'published', catalog }
  return { state: 'failed', reason: `This page reads catalogs of the format 1, and this one has ${catalog.format}.` }
}

function usePublished(): Published {
  const [published, setPublished] = useState<Published>({ state: 'loading' })
  useEffect(() => {
    const unmounted = new AbortController()
    fetchCatalog(unmounted.signal).then(setPublished, (error: unknown) => {
      if (!unmounted.signal.aborted) setPublished({ state: 'failed', reason: toReason(error) })
    })
    return () => unmounted.abort()
  }, [])
  return published
}

/** The state of the newest run. */
type Run =
  | { readonly state: 'idle' | 'cancelled' }
  | { readonly state: 'running'; readonly step: string }
  | { readonly state: 'failed'; readonly reason: string }
  | { readonly state: 'done'; readonly result: Result; readonly sql: string }

/** Rejects when the signal aborts, or else resolves with the promise. */
function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason))
    promise.then(resolve, reject)
  })
}

/**
 * Runs queries one after another. The engine starts with `prepare` or with the first query. The engine is closed with
 * the page and when a query is cancelled. The next query starts another engine and loads its files again, from the
 * browser's cache.
 */
function useRun(catalog: Catalog) {
  const [run, setRun] = useState<Run>({ state: 'idle' })
  const engine = useRef<Promise<Engine> | undefined>(undefined)
  const running = useRef<AbortController | undefined>(undefined)
  const stop = () => {
    running.current?.abort()
    running.current = undefined
    // A failed start has nothing to close, and its query shows the reason.
    engine.current?.then(
      (started) => started.close(),
      () => {},
    )
    engine.current = undefined
  }
  useEffect(() => stop, [])
  const prepare = (): Promise<Engine> => {
    if (engine.current !== undefined) return engine.current
    const starting = startEngine(catalog)
    engine.current = starting
    // The next query tries again.
    starting.catch(() => {
      if (engine.current === starting) engine.current = undefined
    })
    return starting
  }
  const start = async (sql: string) => {
    if (running.current !== undefined) return
    const controller = new AbortController()
    const { signal } = controller
    running.current = controller
    const onStep = (step: string) => !signal.aborted && setRun({ state: 'running', step })
    onStep(`Loading DuckDB, ${ENGINE_MB} MB`)
    try {
      const started = await untilAborted(prepare(), signal)
      onStep('Planning')
      const result = await untilAborted(started.run(sql, { signal, onStep }), signal)
      setRun({ state: 'done', result, sql })
    } catch (error) {
      if (!signal.aborted) setRun({ state: 'failed', reason: toReason(error) })
    } finally {
      if (running.current === controller) running.current = undefined
    }
  }
  const cancel = () => {
    stop()
    setRun({ state: 'cancelled' })
  }
  return { run, prepare, start, cancel }
}

const toShownCell = (cell: Cell | undefined) =>
  cell === null || cell === undefined ? <span class="unknown">NULL</span> : String(cell)

function download(result: Result): void {
  const url = URL.createObjectURL(new Blob([toCsv(result)], { type: 'text/csv;charset=utf-8' }))
  const link = Object.assign(document.createElement('a'), { href: url, download: 'query.csv' })
  link.click()
  // The browser reads the content after the click.
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
}

function ResultCard({ result }: { result: Result }) {
  const { columns, rows, isCut, milliseconds } = result
  const [drawing] = useState(() => toLine(result))
  const count = isCut ? `The first ${toCounted(rows.length, 'row')}` : toCounted(rows.length, 'row')
  return (
    <Card title="Result">
      <div class="actions">
        <p class="note">
          {count} in {(milliseconds / 1000).toFixed(2)} s.
          {rows.length > MOST_SHOWN && ` The table shows ${toCounted(MOST_SHOWN, 'row')}.`}
          {isCut && ` At most ${toCounted(MOST_ROWS, 'row')} are read: aggregate or filter the others.`}
        </p>
        <button type="button" onClick={() => download(result)}>
          Download CSV
        </button>
      </div>
      {drawing !== undefined && <Chart name={columns[1]?.name ?? ''} drawing={drawing} />}
      {rows.length === 0 ? (
        <p class="state empty">The query returned no rows.</p>
      ) : (
        <RecordTable
          caption="Result"
          records={rows.slice(0, MOST_SHOWN)}
          keyOf={(_, index) => index}
          columns={columns.map((column, at) => ({
            title: column.name,
            isNumber: isNumberColumn(column),
            cell: (row: readonly Cell[]) => toShownCell(row[at]),
          }))}
        />
      )}
    </Card>
  )
}

function State({ run }: { run: Run }) {
  if (run.state === 'running')
    return (
      <p class="state" role="status">
        {run.step} …
      </p>
    )
  if (run.state === 'cancelled')
    return (
      <p class="state" role="status">
        Cancelled.
      </p>
    )
  if (run.state !== 'failed') return null
  return (
    <div class="state failed" role="alert">
      <pre>{run.reason}</pre>
    </div>
  )
}

function Workbench({ catalog }: { catalog: Catalog }) {
  const linked = query.value.get('q')
  const [sql, setSql] = useState(linked ?? QUESTIONS[0]?.sql ?? '')
  useEffect(() => {
    if (linked !== null) setSql(linked)
  }, [linked])
  const { run, prepare, start, cancel } = useRun(catalog)
  const isRunning = run.state === 'running'
  const link = toAbsolute(`sql?${new URLSearchParams({ q: sql })}`)
  const { said, copy } = useCopying('Copy link', 'The browser refused: copy the address', link)
  const submit = () => {
    go(withQuery({ q: sql }), { replaces: true })
    void start(sql)
  }
  return (
    <>
      <Card title="Query">
        <div class="filters">
          <label>
            Example
            <select
              value={String(QUESTIONS.findIndex((question) => question.sql === sql))}
              onFocus={() => void prepare()}
              onChange={({ currentTarget }) => setSql(QUESTIONS[Number(currentTarget.value)]?.sql ?? sql)}
            >
              <option value="-1" disabled>
                Own query
              </option>
              {QUESTIONS.map(({ title }, index) => (
                <option key={title} value={String(index)}>
                  {title}
                </option>
              ))}
            </select>
          </label>
        </div>
        <textarea
          aria-label="SQL"
          spellcheck={false}
          autocomplete="off"
          value={sql}
          onFocus={() => void prepare()}
          onInput={({ currentTarget }) => setSql(currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return
            event.preventDefault()
            submit()
          }}
        />
        <div class="actions">
          <button type="button" onClick={submit} disabled={isRunning} aria-keyshortcuts="Control+Enter">
            Run (Ctrl+Enter)
          </button>
          <button type="button" onClick={cancel} disabled={!isRunning}>
            Cancel
          </button>
          <button type="button" onClick={() => copy(() => navigator.clipboard.writeText(link))} aria-live="polite">
            {said}
          </button>
          <State run={run} />
        </div>
      </Card>
      {run.state === 'done' && <ResultCard key={run.sql} result={run.result} />}
    </>
  )
}

const sumOf = (dataset: PublishedDataset, member: 'rows' | 'bytes') =>
  dataset.partitions.reduce((sum, file) => sum + file[member], 0)

function Dataset({ dataset }: { dataset: PublishedDataset }) {
  const { name, description, partitionedBy, partitions } = dataset
  // The columns of all datasets are a thousand rows.
  const [isOpened, setOpened] = useState(false)
  const values = (key: string) => [...new Set(partitions.map(({ keys }) => keys[key] ?? ''))]
  return (
    <details onToggle={() => setOpened(true)}>
      <summary>
        <code>{toViewName(name)}</code>{' '}
        <small>
          {toCounted(sumOf(dataset, 'rows'), 'row')}, {toSize(sumOf(dataset, 'bytes'))}
        </small>
      </summary>
      <p class="note">{description}</p>
      {partitionedBy.length > 0 && (
        <p class="note">
          {'A query loads only the months that it needs: add conditions on the time, or on '}
          {partitionedBy.map((key) => (key === 'interval' ? `interval (${values(key).join(', ')})` : key)).join(', ')}.
        </p>
      )}
      {isOpened && (
        <RecordTable
          caption={`Columns of ${toViewName(name)}`}
          records={dataset.columns}
          keyOf={(column) => column.name}
          columns={[
            { title: 'Column', cell: (column) => <code>{column.name}</code> },
            { title: 'Type', cell: ({ type }) => type.replace(/^(?:Nullable|LowCardinality)\((.*)\)$/, '$1') },
            { title: 'Unit', cell: ({ unit }) => unit ?? <small>none</small> },
            { title: 'Meaning', isText: true, cell: (column) => <span class="text">{column.description}</span> },
          ]}
        />
      )}
    </details>
  )
}

function NotPublished() {
  return (
    <Card title="Nothing is published">
      <p>
        The operator publishes the data as files with <code>npm run publish -- --to &lt;folder&gt;</code>, or every day
        with the setting <code>PUBLISH_TO</code>. The API serves the folder of <code>PUBLISHED_FOLDER</code>, of{' '}
        <code>PUBLISH_TO</code>, or <code>published</code> in <code>DATA_DIR</code>. Then load this page again.
      </p>
    </Card>
  )
}

function Content() {
  const published = usePublished()
  if (published.state === 'loading') return <p class="state loading">Loading the catalog …</p>
  if (published.state === 'none') return <NotPublished />
  if (published.state === 'failed')
    return (
      <p class="state failed" role="alert">
        The catalog could not be read: {published.reason}
      </p>
    )
  const { catalog } = published
  return (
    <>
      <Workbench catalog={catalog} />
      <Card title="Datasets">
        <p class="note">
          Published <TimeValue at={catalog.publishedAt} />.
        </p>
        <div class="schema">
          {catalog.datasets.map((dataset) => (
            <Dataset key={dataset.name} dataset={dataset} />
          ))}
        </div>
      </Card>
    </>
  )
}

/** SQL over the published files, by DuckDB in the browser. */
export function SqlPage() {
  return (
    <>
      <div class="about">
        <h1>SQL</h1>
        <p>
          DuckDB runs in this browser, over the files that the service has published. It has {ENGINE_MB} MB, and is
          loaded when a query is edited or run. Queries are not sent to any server.
        </p>
      </div>
      <div class="column sql">
        <Content />
      </div>
    </>
  )
}
