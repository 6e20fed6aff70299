import { PROBLEM_CODE_NAMES, PROBLEM_CODES, type ProblemCode } from '../problem/codes.ts'
import { toHtml } from './markdown.ts'

/**
 * The content of a document of the explorer for a path that no page of its code has. `body` is HTML; its links are
 * relative to the service's root.
 */
export interface Content {
  readonly title: string
  readonly body: string
}

const withCode = (text: string) => toHtml(text).replaceAll(/`([^`]+)`/g, '<code>$1</code>')

function toEntry(code: ProblemCode): string {
  const { status, title, meaning, action } = PROBLEM_CODES[code]
  return `<div id="${code}">
<dt><a href="docs/errors#${code}"><code>${code}</code></a> <span class="badge">${status}</span></dt>
<dd><strong>${withCode(title)}.</strong> ${withCode(meaning)}</dd>
<dd><span class="hidden">What to do: </span>${withCode(action)}</dd>
</div>`
}

/** All error codes: each problem refers to its entry here. */
export const toErrorCodes = (): Content => ({
  title: 'Error codes',
  body: `<h1>Error codes</h1>
<p>Every failure is <code>application/problem+json</code> (RFC 9457). Programs check <code>code</code>; the texts are for
people. <a href="guides/errors">The guide to errors</a> has an example.</p>
<dl class="card codes">
${PROBLEM_CODE_NAMES.map(toEntry).join('\n')}
</dl>`,
})

const MOST_SHOWN = 200

/** For a path without a page. */
export const toMissing = (path: string): Content => ({
  title: 'Not found',
  body: `<h1>Page not found</h1>
<p>Nothing has the path <code>${toHtml(path.slice(0, MOST_SHOWN))}</code>.</p>
<p class="links"><a href="./">Overview</a> <a href="tokens">Tokens</a> <a href="daos">DAOs</a> <a href="reference">Reference</a>
<a href="guides/first-request">Guides</a></p>`,
})
