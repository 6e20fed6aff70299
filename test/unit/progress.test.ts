import { PassThrough } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { createParts } from '../../shared/progress-bar.ts'

/** An output stream that is a terminal or not. */
function watch(isTTY: boolean) {
  const stream = new PassThrough()
  const out = Object.assign(stream, {
    isTTY,
    columns: 120,
    cursorTo: () => true,
    clearLine: () => true,
    moveCursor: () => true,
  })
  return { out: out as unknown as NodeJS.WriteStream, text: () => String(stream.read() ?? '') }
}

describe('createParts', () => {
  it('draws one bar per round on a terminal', () => {
    const { out, text } = watch(true)
    const onPart = createParts('rows', out)
    for (const total of [2, 3]) for (let done = 1; done <= total; done += 1) onPart(done, total)
    expect(text()).toMatch(/rows .*2\/2 parts.*3\/3 parts/s)
  })

  it('writes nothing if the output is not a terminal', () => {
    const { out, text } = watch(false)
    createParts('rows', out)(1, 1)
    expect(text()).toBe('')
  })
})
