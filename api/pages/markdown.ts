import { Marked } from 'marked'

/** Tables and code are scrollable on a narrow screen, also by keyboard. */
const marked = new Marked({
  renderer: {
    table(token) {
      const row = (cells: typeof token.header, tag: string) =>
        `<tr>${cells.map((cell) => `<${tag}>${this.parser.parseInline(cell.tokens)}</${tag}>`).join('')}</tr>`
      const body = token.rows.map((cells) => row(cells, 'td')).join('\n')
      return `<div class="scroll" tabindex="0"><table>\n<thead>${row(token.header, 'th')}</thead>\n<tbody>${body}</tbody>\n</table></div>\n`
    },
    code: ({ text }) => `<pre tabindex="0"><code>${toHtml(text)}</code></pre>\n`,
  },
})

/** Converts the project's own Markdown to HTML. */
export const fromMarkdown = (text: string): string => marked.parse(text, { async: false })

/** Escapes text for an element or an attribute. */
export const toHtml = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
