import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { RequestHandler } from 'express'
import type { Compression } from '../serving/compression.ts'
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

const DOCS = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>dao-data: interface</title>
<link rel="stylesheet" href="/docs/assets${STYLE}">
<link rel="icon" href="/docs/assets${ICON}">
</head>
<body>
<div id="ui"></div>
<script src="/docs/assets${SCRIPT}"></script>
<script src="/docs/start.js"></script>
</body>
</html>
`

/**
 * `validatorUrl: null` disables Swagger UI's requests to an external host. The document's URL is relative to this
 * script.
 */
const START = `const url = new URL('../openapi.json', document.currentScript.src).href
SwaggerUIBundle({ url, dom_id: '#ui', deepLinking: true, validatorUrl: null })\n`

const html = (path: string): [string, Page] => [
  path,
  {
    type: 'text/html; charset=utf-8',
    make: () => withRelativeLinks(DOCS, path),
    cacheControl: AN_HOUR,
    policy: POLICY,
  },
]

const asset = (name: string, type: string): [string, Page] => [
  `/docs/assets${name}`,
  { type, make: () => readFileSync(join(FOLDER, name)), cacheControl: AN_HOUR, policy: POLICY },
]

const PAGES: ReadonlyMap<string, Page> = new Map([
  html('/docs'),
  html('/docs/'),
  ['/docs/start.js', { type: SCRIPT_TYPE, make: () => START, cacheControl: AN_HOUR, policy: POLICY }],
  asset(STYLE, 'text/css; charset=utf-8'),
  asset(ICON, 'image/png'),
  asset(SCRIPT, SCRIPT_TYPE),
])

/** Swagger UI, served from this host only. */
export const createDocs = (compression: Compression): RequestHandler =>
  createPageHandler({
    compression,
    find: (path) => {
      const page = PAGES.get(path)
      return page === undefined ? undefined : { key: path, page }
    },
  })
