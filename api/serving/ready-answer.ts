import type { AssembledBody } from '../formats/formats.ts'
import type { FlatHeaders } from '../http/headers.ts'
import type { Encoding } from '../http/negotiation.ts'

/** A complete answer with every encoding requested so far. */
export interface ReadyAnswer {
  readonly body: Buffer | AssembledBody
  /** Memory of the body and of its encodings, in bytes. */
  readonly size: number
  /** The basis of its entity tags; null for an answer that is only valid at the moment of the request. */
  readonly tag: string | null
  readonly head: Head
  readonly expiresAt: number
  /** Made without a database statement: it is cached on its second request. */
  readonly isQuick?: boolean
  /** Only one request uses it, so its encodings are not reused. */
  readonly isTransient?: boolean
  /** Already compressed: no other encodings are made. */
  readonly isPacked?: boolean
  /** Whether range requests are supported. */
  readonly hasRanges?: boolean
  readonly forms: Map<Encoding, EncodedForm>
}

/** An answer's bytes in one encoding, with the headers of a 304 and of a full response. */
export interface EncodedForm {
  readonly bytes: Buffer
  readonly headers: string[]
  readonly full: string[]
}

/** Input for the headers of every response with an answer. */
export interface Head {
  /** Headers that do not depend on the time. */
  readonly headers: FlatHeaders
  /** Time from which the data is stale, in Unix milliseconds; null for never. */
  readonly staleAt: number | null
  /** Maximum age in seconds, from the cadence of its data; undefined if clients must not cache it. */
  readonly maxAge: number | undefined
  /** `Cache-Control` for `maxAge`. */
  readonly cacheControl: string
  /** Time at which the answer changes, in Unix milliseconds. Clients must not reuse it after that. */
  readonly expiresAt: number
}
