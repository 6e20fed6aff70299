import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { DataError } from '../../shared/errors.ts'
import type { StreamAnswer } from './answer.ts'

/** Opens an answer and waits for its first byte: a query that fails at once still gets a proper problem. */
export async function openStream(answer: StreamAnswer, signal: AbortSignal): Promise<Readable> {
  try {
    const source = await answer.open(signal)
    // An empty answer may be at its end before anybody looks: then there is nothing to read, and no word of it.
    await Promise.race(['readable', 'end'].map((event) => once(source, event, { signal })))
    return source
  } catch (cause) {
    if (cause instanceof DataError) throw cause
    throw new DataError('storage', 'ClickHouse broke off before the first byte of an answer', { cause })
  }
}
