import { inFormat, type Question } from '../interface.ts'
import { useCopying } from './copying.ts'

function CopyCurl({ url }: { url: string }) {
  const command = `curl '${url}'`
  const { said, copy } = useCopying('Copy curl', 'The browser refused: select the line above', url)
  return (
    <>
      <code class="curl">{command}</code>
      <button type="button" onClick={() => copy(() => navigator.clipboard.writeText(command))} aria-live="polite">
        {said}
      </button>
    </>
  )
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
        <CopyCurl url={question.url} />
      </div>
    </details>
  )
}
