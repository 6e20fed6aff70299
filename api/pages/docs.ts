import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { RequestHandler } from 'express'
import { PROBLEM_CODES } from '../problem/codes.ts'
import { withRelativeLinks } from './links.ts'
import { createPageHandler, type Page } from './page-handler.ts'

/** Resolves only the folder: importing the package would load its whole bundle. */
const FOLDER = dirname(fileURLToPath(import.meta.resolve('swagger-ui-dist/swagger-ui.css')))

/** The files that the pages refer to. The rest of the folder, such as its own pages, is not served. */
const [STYLE, ICON, SCRIPT] = ['/swagger-ui.css', '/favicon-32x32.png', '/swagger-ui-bundle.js']
const SCRIPT_TYPE = 'text/javascript; charset=utf-8'
const AN_HOUR = 'public, max-age=3600'

/** Everything is loaded from this host; Swagger UI sets inline styles and draws icons from data URLs. */
const POLICY = [
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self';",
  "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
].join(' ')

const page = (title: string, head: string, body: string) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
${head}
</head>
<body>
${body}
</body>
</html>
`

const DOCS = page(
  'dao-data: interface',
  `<link rel="stylesheet" href="/docs/assets${STYLE}">\n<link rel="icon" href="/docs/assets${ICON}">`,
  `<div id="ui"></div>\n<script src="/docs/assets${SCRIPT}"></script>\n<script src="/docs/start.js"></script>`,
)

/**
 * `validatorUrl: null` disables Swagger UI's requests to an external host. The document's URL is relative to this
 * script.
 */
const START = `const url = new URL('../openapi.json', document.currentScript.src).href
SwaggerUIBundle({ url, dom_id: '#ui', deepLinking: true, validatorUrl: null })\n`

const withCode = (text: string) => text.replaceAll('<', '&lt;').replaceAll(/`([^`]+)`/g, '<code>$1</code>')

const ERRORS = page(
  'dao-data: error codes',
  '<style>body{font:16px/1.5 sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}td,th{text-align:left;padding:.4rem .8rem;vertical-align:top}</style>',
  `<h1>Error codes</h1>
<p>Every failure is <code>application/problem+json</code> (RFC 9457). Decide by <code>code</code>, not by text.</p>
<table>
<tr><th>code</th><th>status</th><th>title</th><th>what to do</th></tr>
${Object.entries(PROBLEM_CODES)
  .map(
    ([code, { status, title, meaning }]) =>
      `<tr id="${code}"><td><code>${code}</code></td><td>${status}</td><td>${title}</td><td>${withCode(meaning)}</td></tr>`,
  )
  .join('\n')}
</table>`,
)

const html = (path: string, text: string): [string, Page] => [
  path,
  {
    type: 'text/html; charset=utf-8',
    make: () => withRelativeLinks(text, path),
    cacheControl: AN_HOUR,
    policy: POLICY,
  },
]

const asset = (name: string, type: string): [string, Page] => [
  `/docs/assets${name}`,
  { type, make: () => readFileSync(join(FOLDER, name)), cacheControl: AN_HOUR, policy: POLICY },
]

const PAGES: ReadonlyMap<string, Page> = new Map([
  html('/docs', DOCS),
  html('/docs/', DOCS),
  html('/docs/errors', ERRORS),
  ['/docs/start.js', { type: SCRIPT_TYPE, make: () => START, cacheControl: AN_HOUR, policy: POLICY }],
  asset(STYLE, 'text/css; charset=utf-8'),
  asset(ICON, 'image/png'),
  asset(SCRIPT, SCRIPT_TYPE),
])

/** Swagger UI and the table of error codes, served from this host only. */
export const createDocs = (): RequestHandler =>
  createPageHandler({
    find: (path) => {
      const page = PAGES.get(path)
      return page === undefined ? undefined : { key: path, page }
    },
  })
