import { defineConfig } from 'vite'

export default defineConfig({
  // Relative to the page's own <base>, so that it works under any path of any host.
  base: './',
  // Whoever looks at the page gets its code as files of their own: the policy allows nothing in the document.
  build: { target: 'es2022', assetsInlineLimit: 0, modulePreload: { polyfill: false } },
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
})
