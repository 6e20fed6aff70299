import { gzipSync } from 'node:zlib'
import { defineConfig, type Plugin } from 'vite'

/** Emits WebAssembly only in compressed form, which the API sends as it is: DuckDB has 34 MB, and 8 MB compressed. */
const compressWasm: Plugin = {
  name: 'compress-wasm',
  generateBundle(_options, bundle) {
    for (const [name, file] of Object.entries(bundle)) {
      if (file.type !== 'asset' || !name.endsWith('.wasm')) continue
      this.emitFile({ type: 'asset', fileName: `${name}.gz`, source: gzipSync(file.source, { level: 9 }) })
      delete bundle[name]
    }
  },
}

export default defineConfig({
  // Relative to the page's <base>, so that it works under any path of any host.
  base: './',
  // Code is always emitted as separate files: the content security policy allows no inline code.
  build: {
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // The first view and late pages share these modules: in one file they compress better than in five.
    rolldownOptions: {
      output: {
        codeSplitting: {
          groups: [{ name: 'shared', test: /web\/(?:parts\/(?:card|record-table|drawing)|format|place)/ }],
        },
      },
    },
  },
  plugins: [compressWasm],
  // The reader of files uses one decompressor. An unused one compiles WebAssembly on import, which its policy forbids.
  worker: { rolldownOptions: { treeshake: { moduleSideEffects: (id) => !id.includes('hyparquet-compressors') } } },
  // Without `development: false` each element of the build would contain its position in the source.
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact', development: false } },
})
