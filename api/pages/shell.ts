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

const toGroup = ({ title, links }: LinkGroup) =>
  `<h2>${toHtml(title)}</h2>\n<ul>\n${links.map(({ href, text }) => `<li><a href="${href}">${toHtml(text)}</a></li>`).join('\n')}\n</ul>`

/** The header of the site, as `web/app.tsx` draws it. */
const HEADER = `<header class="top">
<a class="brand" href="/">dao-data</a>
<nav aria-label="Pages">
${SITE_PAGES.map(([to, text]) => `<a href="/${to === './' ? '' : to}">${text}</a>`).join('\n')}
</nav>
<button type="button" aria-label="Colours: system. Change">◐</button>
</header>`

/** A page of the documentation: `body` is HTML, `markdown` is the address of the Markdown version. */
export const toPage = (page: { title: string; body: string; markdown: string; groups?: readonly LinkGroup[] }) =>
  `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${toHtml(page.title)} – dao-data</title>
<link rel="stylesheet" href="/pages/style.css">
<script src="/pages/theme.js"></script>
<link rel="icon" href="/favicon.ico">
<link rel="alternate" type="text/markdown" href="${page.markdown}">
<script src="/pages/try.js" defer></script>
</head>
<body>
${HEADER}
<div class="layout">
<nav class="side" aria-label="Documentation">
<details open>
<summary>Documentation</summary>
${[...GROUPS, ...(page.groups ?? [])].map(toGroup).join('\n')}
</details>
</nav>
<main>
${page.body}
<p><a href="${page.markdown}">This page as Markdown</a></p>
</main>
</div>
</body>
</html>
`
