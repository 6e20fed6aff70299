import { describe, expect, it } from 'vitest'
import { fromMarkdown } from '../../web/parts/markdown.ts'

describe('fromMarkdown', () => {
  it.each([
    ['a script', '<script>alert(1)</script>', '<p>alert(1)</p>'],
    ['a tag within a tag', '<scr<script>ipt>x</scr</script>ipt>', '<p>&lt;script&gt;x&lt;/script&gt;</p>'],
    ['an event handler', 'a <img src=x onerror=alert(1)> b', '<p>a  b</p>'],
    ['an unsafe link', '[a](javascript:alert(1))', '<p>[a](javascript:alert(1))</p>'],
    ['an unsafe image', '![a](data:text/html,x)', '<p>![a](data:text/html,x)</p>'],
    ['a relative link', '[a](/b)', '<p>[a](/b)</p>'],
    ['a language with HTML', '```"><b>\nx\n```', '<pre tabindex="0"><code>x\n</code></pre>'],
    ['reordering characters', 'a\u202eb\u2066c', '<p>abc</p>'],
    ['a line break', 'a<br/>b', '<p>a<br>b</p>'],
    ['a heading', '# a', '<h3>a</h3>'],
    ['a first heading of a low level', '#### a', '<h3>a</h3>'],
    ['headings that leave out levels', '## a\n#### b\n### c\n# d', '<h3>a</h3>\n<h4>b</h4>\n<h4>c</h4>\n<h3>d</h3>'],
  ])('shows %s safely', (_, text, html) => {
    expect(fromMarkdown(text).trim().replace('\n</p>', '</p>')).toBe(html)
  })

  it('links web addresses, and images instead of loading them', () => {
    const link = 'target="_blank" rel="noreferrer nofollow ugc"'
    expect(fromMarkdown('https://a.example/?b=1&c="')).toContain(
      `<a href="https://a.example/?b=1&amp;c=" title="https://a.example/?b=1&amp;c=" ${link}>`,
    )
    expect(fromMarkdown('![x"<](https://a.example/i.png)')).toBe(
      `<p><a href="https://a.example/i.png" title="https://a.example/i.png" ${link}>Image: x&quot;&lt;</a></p>\n`,
    )
  })

  it('shows a very long text without formatting', () => {
    expect(fromMarkdown(`<b>${'*a_'.repeat(50_000)}`)).toMatch(/^<pre class="plain">&lt;b&gt;\*a_\*a_/)
  })

  it.each(['> ', '*a_', '[', '![[', '<!--', '<', '- '])('reads a text of nothing but %o', (part) => {
    expect(fromMarkdown(part.repeat(Math.floor(90_000 / part.length)))).not.toBe('')
  })
})
