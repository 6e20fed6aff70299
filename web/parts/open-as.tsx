import { READS } from '../declared.ts'
import { inFormat, type Question } from '../interface.ts'
import { isEmbed, toAbsolute } from '../place.ts'
import { theme } from '../theme.ts'
import { useCopying } from './copying.ts'

/** A text with a button that copies it. A block keeps its line breaks. */
export function CopyLine({ text, usual, isBlock = false }: { text: string; usual: string; isBlock?: boolean }) {
  const { said, copy } = useCopying(usual, 'The browser refused: select the line above', text)
  return (
    <>
      <code class={isBlock ? 'curl block' : 'curl'}>{text}</code>
      <button type="button" onClick={() => copy(() => navigator.clipboard.writeText(text))} aria-live="polite">
        {said}
      </button>
    </>
  )
}

/** Datasets with one series, which has no id. */
export const OF_ALL: readonly string[] = ['market-cap', 'treasury-value', 'index', 'index-token']

/**
 * The page of where a value comes from: the newest one, or the first one from `after` (Unix seconds) on. Undefined unless the data
 * is of one token, DAO or of all together.
 */
export function toProvenance({ path, url }: Question, after?: number): string | undefined {
  const [dataset] = READS[path] ?? []
  if (dataset === undefined) return undefined
  const [id, ...others] = new URL(url).searchParams.getAll('id').flatMap((ids) => ids.split(','))
  const isOfAll = OF_ALL.includes(dataset)
  if (!isOfAll && (id === undefined || others.length > 0)) return undefined
  const since = after === undefined ? '' : `&after=${new Date(after * 1000).toISOString()}`
  return `provenance?dataset=${dataset}${isOfAll ? '' : `&id=${id}`}${since}`
}

/** Links to open, download and copy the request of the shown data. */
export function OpenAs({
  question,
  name,
  hasTables = true,
}: {
  question: Question
  name: string
  hasTables?: boolean
}) {
  const provenance = toProvenance(question)
  return (
    <details class="drop open-as">
      <summary>
        Open as<span class="of">: {name}</span>
      </summary>
      <div class="menu">
        <a href={question.url} target="_blank" rel="noreferrer">
          JSON
        </a>
        {hasTables && <a href={inFormat(question, 'csv')}>CSV</a>}
        {hasTables && <a href={inFormat(question, 'parquet')}>Parquet</a>}
        <CopyLine text={`curl '${question.url}'`} usual="Copy curl" />
        {provenance !== undefined && !isEmbed && <a href={provenance}>Where from?</a>}
      </div>
    </details>
  )
}

/** How a chart can be shown on another site. */
export interface Embedding {
  /** The path of the chart's own page: `tokens/<id>`. */
  readonly path: string
  /** The options that the reader selected. */
  readonly query: Readonly<Record<string, string>>
  /** The address of an image of the same data, if the service draws one. */
  readonly image?: string
}

const toAttribute = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

/** The HTML of a frame with the chart, and the address of its image, to copy. */
export function EmbedAs({ name, of: { path, query, image } }: { name: string; of: Embedding }) {
  const parameters = new URLSearchParams({ ...query, theme: theme.value })
  const source = toAttribute(toAbsolute(`embed/${path}?${parameters}`))
  const size = 'width="640" height="420" style="border:0" loading="lazy"'
  return (
    <details class="drop">
      <summary>
        Embed<span class="of">: {name}</span>
      </summary>
      <div class="menu">
        <CopyLine text={`<iframe src="${source}" title="${toAttribute(name)}" ${size}></iframe>`} usual="Copy HTML" />
        {image !== undefined && (
          <CopyLine text={toAbsolute(`${image}?theme=${theme.value}`)} usual="Copy address of the 24 h image" />
        )}
      </div>
    </details>
  )
}
