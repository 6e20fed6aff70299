import { readFileSync } from 'node:fs'
import { setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { initWasm, Resvg } from '@resvg/resvg-wasm'

// On Linux the priority is that of this thread: drawing yields to the answers of the process. Elsewhere it would be that of
// the process.
if (process.platform === 'linux') setPriority(0, 5)
const { wasm, fonts, family } = workerData
await initWasm(readFileSync(wasm))
const font = {
  fontBuffers: fonts.map((file) => readFileSync(file)),
  loadSystemFonts: false,
  defaultFontFamily: family,
}

function toPng(svg) {
  const drawing = new Resvg(svg, { font })
  try {
    const picture = drawing.render()
    try {
      return picture.asPng()
    } finally {
      picture.free()
    }
  } finally {
    // The memory of WebAssembly is not collected.
    drawing.free()
  }
}

parentPort.on('message', ({ id, svg }) => {
  try {
    parentPort.postMessage({ id, png: toPng(svg) })
  } catch (error) {
    parentPort.postMessage({ id, failure: error instanceof Error ? error.message : String(error) })
  }
})
