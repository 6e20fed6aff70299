/** From here on the bytes held are too many to be carried along. */
const MOST_HELD_BYTES = 64 * 1024

/**
 * Passes bytes on as they come, without copying them, and returns the last ones instead: at least `least` of them, if there
 * are so many at all.
 */
export async function* holdBack(source: AsyncIterable<Buffer>, least: number): AsyncGenerator<Buffer, Buffer> {
  let held: Buffer = Buffer.alloc(0)
  for await (const chunk of source) {
    if (chunk.length >= least) {
      if (held.length > 0) yield held
      held = chunk
      continue
    }
    held = Buffer.concat([held, chunk])
    if (held.length < MOST_HELD_BYTES) continue
    yield held.subarray(0, -least)
    held = held.subarray(-least)
  }
  return held
}
