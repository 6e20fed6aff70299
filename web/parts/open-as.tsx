import { useState } from 'preact/hooks'
import { inFormat, type Question } from '../interface.ts'

function CopyCurl({ url }: { url: string }) {
  const [said, say] = useState('Copy curl')
  const command = `curl '${url}'`
  const copy = () =>
    navigator.clipboard.writeText(command).then(
      () => say('Copied'),
      () => say('The browser refused: select the line above'),
    )
  return (
    <>
      <code class="curl">{command}</code>
      <button type="button" onClick={copy} aria-live="polite">
        {said}
      </button>
    </>
  )
}

/** The request behind what is shown, to open, to download and to copy. */
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
