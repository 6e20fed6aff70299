import MarkdownIt from 'markdown-it'

/** Longer texts are shown without formatting, because parsing hostile ones takes seconds. */
const MOST_CHARACTERS = 100_000

/** Characters that reorder the text around them, such as the right-to-left override. */
const REORDERING = /[\u202a-\u202e\u2066-\u2069]/g

/**
 * HTML is parsed only to leave out its tags: the rules below write its text, escaped. Links lead to web addresses only,
 * and images are links, because the page loads nothing from other hosts.
 */
const markdown = new MarkdownIt({ html: true, linkify: true })
markdown.validateLink = (url) => /^https?:\/\//i.test(url)
markdown.linkify.set({ fuzzyLink: false, fuzzyEmail: false })
const { rules } = markdown.renderer
const { escapeHtml } = markdown.utils

const withoutTags = (html: string) => escapeHtml(html.replace(/<[^<>]*>/g, ''))
rules.html_inline = (tokens, at) => (/^<br\b/i.test(tokens[at]?.content ?? '') ? '<br>' : '')
rules.html_block = (tokens, at) => `<p>${withoutTags(tokens[at]?.content ?? '')}</p>\n`

const openLink = (url: string | number | null | undefined) => {
  const address = escapeHtml(String(url ?? ''))
  return `<a href="${address}" title="${address}" target="_blank" rel="noreferrer nofollow ugc">`
}
rules.link_open = (tokens, at) => openLink(tokens[at]?.attrGet('href'))
rules.image = (tokens, at) => {
  const { content = '' } = tokens[at] ?? {}
  return `${openLink(tokens[at]?.attrGet('src'))}Image${content === '' ? '' : `: ${escapeHtml(content)}`}</a>`
}

/** The levels of the last heading and of those that contain it, as the shown text has them. */
let outline: readonly number[] = []

/** Headings of the text are below those of the page, and no level is left out: screen readers list them as a tree. */
const toTag = () => `h${Math.min(6, outline.length + 2)}`
rules.heading_open = (tokens, at) => {
  const level = Number(tokens[at]?.tag.slice(1))
  outline = [...outline.filter((outer) => outer < level), level]
  return `<${toTag()}>`
}
rules.heading_close = () => `</${toTag()}>\n`
rules.table_open = () => '<div class="scroll" tabindex="0"><table>\n'
rules.table_close = () => '</table></div>\n'
// The content security policy forbids style attributes.
const openCell = (tag: string, style: unknown) =>
  String(style).endsWith('right') ? `<${tag} class="number">` : `<${tag}>`
rules.th_open = (tokens, at) => openCell('th', tokens[at]?.attrGet('style'))
rules.td_open = (tokens, at) => openCell('td', tokens[at]?.attrGet('style'))
rules.fence = (tokens, at) => `<pre tabindex="0"><code>${escapeHtml(tokens[at]?.content ?? '')}</code></pre>\n`
rules.code_block = rules.fence

/** Converts Markdown of unknown authors to safe HTML. */
export function fromMarkdown(text: string): string {
  const ordered = text.replace(REORDERING, '')
  if (ordered.length > MOST_CHARACTERS) return `<pre class="plain">${escapeHtml(ordered)}</pre>`
  outline = []
  return markdown.render(ordered)
}
