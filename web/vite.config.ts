import { defineConfig } from 'vite'

export default defineConfig({
  // Relative to the page's <base>, so that it works under any path of any host.
  base: './',
  // Code is always emitted as separate files: the content security policy allows no inline code.
  build: { target: 'es2022', assetsInlineLimit: 0, modulePreload: { polyfill: false } },
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
})
