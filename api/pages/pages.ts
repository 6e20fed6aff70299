import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { RequestHandler } from 'express'
import type { Config } from '../../shared/config/config.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { OpenApi } from '../openapi/shape.ts'
import type { Compression } from '../serving/compression.ts'
import { GUIDES, OF_REGISTRY, toGuide, toGuideList } from './guides.ts'
import { withAbsoluteLinks, withRelativeLinks } from './links.ts'
import { toLlmsText } from './llms.ts'
import { fromMarkdown } from './markdown.ts'
import { createPageHandler, type Page } from './page-handler.ts'
import {
  byTag,
  toOperationHtml,
  toOperationLinks,
  toOperationList,
  toOperationMarkdown,
  toOverviewHtml,
  toReferenceMarkdown,
} from './reference.ts'
import { toPage } from './shell.ts'

/** The built page, whose font the documentation shares. */
const BUILT_ASSETS = join(import.meta.dirname, '../../web/dist/assets')

/** The path of the font of the built page; undefined without one, when the system's font is used. */
function findFont(): string | undefined {
  const names = existsSync(BUILT_ASSETS) ? readdirSync(BUILT_ASSETS) : []
  const name = names.find((one) => /^inter-.*\.woff2$/.test(one))
  return name === undefined ? undefined : `/assets/${name}`
}

function toStyle(font: string | undefined): string {
  const face = `@font-face {
  font-family: "Inter";
  src: url("..${font}") format("woff2");
  font-weight: 400 700;
  font-display: optional;
}
`
  return `${font === undefined ? '' : face}${asset('style.css')}`
}

const asset = (name: string) => readFileSync(join(import.meta.dirname, 'assets', name), 'utf8')

/** Every page by its path; each is made on its first request. */
function toPages(
  document: OpenApi,
  { api: { publicUrl: base }, mode }: Config,
  registry: Registry,
): ReadonlyMap<string, Page> {
  const font = findFont()
  const html = (
    path: string,
    make: () => Omit<Parameters<typeof toPage>[0], 'path' | 'font' | 'isDemo'>,
  ): [string, Page] => [
    path,
    {
      type: 'text/html; charset=utf-8',
      make: () => withRelativeLinks(toPage({ ...make(), path, font, isDemo: mode === 'demo' }), path),
    },
  ]
  const markdown = (path: string, make: () => string): [string, Page] => [
    path,
    { type: 'text/markdown; charset=utf-8', make: () => withAbsoluteLinks(make(), base) },
  ]
  return new Map<string, Page>([
    html('/reference', () => ({
      title: 'Reference',
      body: toOverviewHtml(document),
      groups: toOperationLinks(document),
    })),
    markdown('/reference.md', () => toReferenceMarkdown(document, base)),
    ...byTag(document).flatMap(({ operations }) =>
      operations.flatMap(({ path, operation }) => [
        html(`/reference/${operation.operationId}`, () => ({
          title: operation.summary,
          body: toOperationHtml(document, base, path, operation),
          groups: toOperationLinks(document),
          hasForm: true,
        })),
        markdown(`/reference/${operation.operationId}.md`, () => toOperationMarkdown(document, base, path, operation)),
      ]),
    ),
    html('/guides', () => ({ title: 'Guides', body: fromMarkdown(toGuideList()) })),
    markdown('/guides.md', toGuideList),
    ...GUIDES.flatMap(({ name, title }) => [
      html(`/guides/${name}`, () => ({ title, body: fromMarkdown(toGuide(name, base, registry)) })),
      markdown(`/guides/${name}.md`, () => toGuide(name, base, registry)),
    ]),
    ['/llms.txt', { type: 'text/plain; charset=utf-8', make: () => toLlmsText(document, base) }],
    [
      '/pages/operations.json',
      { type: 'application/json; charset=utf-8', make: () => JSON.stringify(toOperationList(document)) },
    ],
    ['/pages/style.css', { type: 'text/css; charset=utf-8', make: () => toStyle(font) }],
    ['/pages/theme.js', { type: 'text/javascript; charset=utf-8', make: () => asset('theme.js') }],
    ['/pages/side.js', { type: 'text/javascript; charset=utf-8', make: () => asset('side.js') }],
    ['/pages/try.js', { type: 'text/javascript; charset=utf-8', make: () => asset('try.js') }],
  ])
}

/** The reference, the guides and llms.txt, served from this host only. */
export function createPages(options: {
  toDocument: () => OpenApi
  config: Config
  registry: Registry
  compression: Compression
}): RequestHandler {
  let pages: ReadonlyMap<string, Page> | undefined
  return createPageHandler({
    compression: options.compression,
    find: (path) => {
      pages ??= toPages(options.toDocument(), options.config, options.registry)
      const page = pages.get(path)
      if (page === undefined) return undefined
      return { key: OF_REGISTRY.has(path) ? `${path} ${options.registry.version}` : path, page }
    },
  })
}
