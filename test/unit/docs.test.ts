import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8')
const SOURCES = ['api', 'clickhouse', 'clients', 'shared', 'test', 'tools', 'web', 'workers']
const PAGES = ['README.md', 'CHANGELOG.md', ...readdirSync(join(ROOT, 'docs')).map((name) => `docs/${name}`)].filter(
  (file) => file.endsWith('.md'),
)

const listSources = () =>
  SOURCES.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
  ).filter((file) => /\.tsx?$/.test(file) && !file.includes('node_modules'))

const headingsOf = (page: string) => [...page.matchAll(/^#{1,4} (.+)$/gm)].map(([, heading = '']) => heading)

/** Returns the anchor of a heading on GitHub. */
const toAnchor = (heading: string) =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')

/** Finds citations like `docs/contract.md 4` in source files. A comment may break the line inside a citation. */
function findCitations(): { file: string; cited: string }[] {
  return listSources().flatMap((file) => {
    const text = read(file).replaceAll(/\n\s*(?:\*|\/\/)\s*/g, ' ')
    return [...text.matchAll(/(docs\/\w+\.md),? sections? (\d[\d.]*(?:(?:, | and | to )\d[\d.]*)*)/g)].flatMap(
      ([, page, numbers = '']) =>
        [...numbers.matchAll(/\d+(?:\.\d+)*/g)].map(([number]) => ({ file, cited: `${page} ${number}` })),
    )
  })
}

describe('comments', () => {
  it('cite only existing sections', () => {
    const sections = ['docs/contract.md', 'docs/providers.md'].flatMap((page) =>
      headingsOf(read(page)).flatMap((heading) => {
        const [, number] = /^(\d+(?:\.\d+)*)\.? /.exec(heading) ?? []
        return number === undefined ? [] : [`${page} ${number}`]
      }),
    )
    const citations = findCitations()
    expect(citations.length).toBeGreaterThan(100)
    expect(citations.filter(({ cited }) => !sections.includes(cited))).toEqual([])
  })
})

describe('documents', () => {
  it('link only to existing files and headings', () => {
    const broken = PAGES.flatMap((file) => {
      const page = read(file).replaceAll(/```.*?```/gs, '')
      return [...page.matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)/g)].flatMap(([, path = '', anchor]) => {
        const target = path === '' ? file : join(dirname(file), path)
        if (!existsSync(join(ROOT, target))) return [`${file}: ${target}`]
        if (anchor === undefined || headingsOf(read(target)).map(toAnchor).includes(anchor)) return []
        return [`${file}: ${target}#${anchor}`]
      })
    })
    expect(broken).toEqual([])
  })
})
