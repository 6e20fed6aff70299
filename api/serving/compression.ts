import type { IncomingMessage, ServerResponse } from 'node:http'
import { Transform } from 'node:stream'
import type { Admission, ClientKey } from '../admission/admission.ts'
import { createEncoder, type Encoding, encode } from '../http/negotiation.ts'
import { createDisconnectSignal, createSingleFlight, inTurn } from '../single-flight/single-flight.ts'
import type { ReadyAnswer } from './ready-answer.ts'

type CompressedEncoding = Exclude<Encoding, 'identity'>

/** Compression in the thread pool. Every task waits in a queue with one line per client. */
export interface Compression {
  /**
   * Compresses a complete answer. Concurrent requests for the same answer share the work.
   * @throws Problem `unavailable` if the request would have to wait too long, or the reason of the disconnect signal.
   */
  compress(
    answer: ReadyAnswer,
    encoding: CompressedEncoding,
    context: { readonly request: IncomingMessage; readonly response: ServerResponse },
  ): Promise<Buffer>
  /** A compression stage for a stream. Each chunk is one task, so a slow client occupies no slot. */
  createStage(encoding: CompressedEncoding, client: ClientKey, signal: AbortSignal): Transform
}

/** More than a chunk of a stream, so that the encoder never waits for its reader while it has a slot. */
const MAX_ENCODED_CHUNK = 1024 * 1024

export function createCompression({
  compression: queue,
  clientKeyOf,
}: Pick<Admission, 'compression' | 'clientKeyOf'>): Compression {
  const singleFlight = createSingleFlight<Buffer>(queue)
  /** Not the entity tag: the memory of an answer for one request is reused after its response. */
  const ids = new WeakMap<ReadyAnswer, number>()
  let count = 0
  const toId = (answer: ReadyAnswer) => {
    const id = ids.get(answer) ?? ++count
    ids.set(answer, id)
    return id
  }
  return {
    compress: (answer, encoding, { request, response }) => {
      const work = inTurn(async () => {
        const body = Buffer.isBuffer(answer.body) ? answer.body : answer.body.toText()
        return encode(body, encoding, { isCached: answer.tag !== null && answer.isTransient !== true })
      })
      const demand = { client: clientKeyOf(request) }
      return singleFlight.share(`${toId(answer)} ${encoding}`, work, demand, createDisconnectSignal(response)()).result
    },
    createStage: (encoding, client, signal) => {
      // Errors are reported to the callbacks of writes.
      const encoder = createEncoder(encoding, MAX_ENCODED_CHUNK).on('error', () => {})
      /** Starts one task in its turn, and passes its output on. */
      const inTurn = async (stage: Transform, start: (done: (error?: Error | null) => void) => void) => {
        const release = await queue.enter(client, signal).turn
        try {
          await new Promise<void>((resolve, reject) => {
            // The client may disconnect during the work.
            encoder.once('close', resolve)
            start((error) => {
              encoder.off('close', resolve)
              if (error) reject(error)
              else resolve()
            })
          })
        } finally {
          release()
        }
        for (let bytes = encoder.read(); bytes !== null; bytes = encoder.read()) stage.push(bytes)
      }
      return new Transform({
        transform(bytes: Buffer, _encoding, done) {
          inTurn(this, (written) => void encoder.write(bytes, written)).then(() => done(), done)
        },
        flush(done) {
          const finish = (finished: (error?: Error | null) => void) => {
            encoder.on('data', (bytes) => this.push(bytes)).once('end', finished)
            encoder.end()
          }
          inTurn(this, finish).then(() => done(), done)
        },
        destroy(error, done) {
          encoder.destroy()
          done(error)
        },
      })
    },
  }
}
