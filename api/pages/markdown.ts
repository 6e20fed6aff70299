import MarkdownIt from 'markdown-it'

const markdown = new MarkdownIt({ html: true, linkify: true })
markdown.linkify.set({ fuzzyLink: false, fuzzyEmail: false })
const { rules } = markdown.renderer
/** Tables and code are scrollable on a narrow screen, also by keyboard. */
rules.table_open = () => '<div class="scroll" tabindex="0"><table>\n'
rules.table_close = () => '</table></div>\n'
// The content security policy forbids the style attributes that align columns.
rules.th_open = () => '<th>'
rules.td_open = () => '<td>'
rules.fence = (tokens, at) => `<pre tabindex="0"><code>${toHtml((tokens[at]?.content ?? '').trimEnd())}</code></pre>\n`

/** Converts the project's own Markdown to HTML. */
export const fromMarkdown = (text: string): string => markdown.render(text)

/** Converts the project's own Markdown to HTML within a paragraph. */
export const fromInlineMarkdown = (text: string): string => markdown.renderInline(text)

/** Escapes text for an element or an attribute. */
export const toHtml = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
