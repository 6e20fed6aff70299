import { SITE_PAGES } from '../../shared/site-pages.ts'
import { GUIDES } from './guides.ts'
import { toHtml } from './markdown.ts'

/** A group of links beside a page. */
export interface LinkGroup {
  readonly title: string
  readonly links: readonly { readonly href: string; readonly text: string }[]
}

const GROUPS: readonly LinkGroup[] = [
  { title: 'Guides', links: GUIDES.map(({ name, title }) => ({ href: `/guides/${name}`, text: title })) },
  {
    title: 'Interface',
    links: [
      { href: '/reference', text: 'Reference' },
      { href: '/openapi.json', text: 'OpenAPI document' },
      { href: '/docs', text: 'Swagger UI' },
      { href: '/docs/errors', text: 'Error codes' },
      { href: '/llms.txt', text: 'llms.txt' },
    ],
  },
]

const toGroup = ({ title, links }: LinkGroup, path: string) =>
  `<h2>${toHtml(title)}</h2>\n<ul>\n${links.map(({ href, text }) => `<li><a href="${href}"${href === path ? ' aria-current="page"' : ''}>${toHtml(text)}</a></li>`).join('\n')}\n</ul>`

/** The bar of the site, as `web/app.tsx` draws it. */
const BAR = `<div class="top">
<a class="brand" href="/"><img src="/favicon.ico" alt="" width="20" height="20">dao-data</a>
<nav aria-label="Pages">
${SITE_PAGES.map(([to, text]) => `<a href="/${to === './' ? '' : to}">${text}</a>`).join('\n')}
</nav>
<a class="search" href="/?search" aria-keyshortcuts="Control+K Meta+K">Search</a>
<button type="button" aria-label="Colours: system. Change">◐</button>
</div>`

/** Readers must not mistake simulated numbers for real ones: answers of the forms are among them. */
const DEMO = '<p class="demo"><strong>DEMO</strong> – all numbers here are simulated.</p>'

/**
 * A page of the documentation: `body` is HTML, `path` is its address, which has a Markdown version. `groups` are first
 * in the links beside it. `hasForm`: whether it has the form of an operation.
 */
export const toPage = (page: {
  title: string
  body: string
  path: string
  groups?: readonly LinkGroup[]
  hasForm?: boolean
  /** Whether all numbers of the service are simulated. */
  isDemo: boolean
  /** Loaded before the first paint: the style takes the system's font if this one is late. */
  font?: string | undefined
}) =>
  `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${toHtml(page.title)} – dao-data</title>
${page.font === undefined ? '' : `<link rel="preload" href="${page.font}" as="font" type="font/woff2" crossorigin>\n`}<link rel="stylesheet" href="/pages/style.css">
<script src="/pages/theme.js"></script>
<link rel="icon" href="/favicon.ico">
<link rel="alternate" type="text/markdown" href="${page.path}.md">
<script src="/pages/side.js" defer></script>
${page.hasForm === true ? '<script src="/pages/try.js" defer></script>\n' : ''}</head>
<body>
<header>
${page.isDemo ? `${DEMO}\n` : ''}${BAR}
</header>
<div class="layout">
<nav class="side" aria-label="Documentation">
<details open>
<summary>Documentation</summary>
${[...(page.groups ?? []), ...GROUPS].map((group) => toGroup(group, page.path)).join('\n')}
</details>
</nav>
<main>
${page.body}
<p><a href="${page.path}.md">This page as Markdown</a></p>
</main>
</div>
</body>
</html>
`
