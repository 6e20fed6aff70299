/** The body is larger than the cap allows. */
export class BodyTooLarge extends Error {}

/**
 * Reads a body to its end, at most `maxBytes` of it after decompression.
 * @throws BodyTooLarge past the cap, and what the connection throws when it breaks.
 */
export async function readBody(response: Response, maxBytes: number): Promise<string> {
  const { text, complete } = await readUpTo(response, maxBytes)
  if (!complete) throw new BodyTooLarge()
  return text
}

/** The beginning of a body, up to `maxBytes`: enough of an error answer, however long it is. */
export async function readExcerpt(response: Response, maxBytes: number): Promise<string> {
  return (await readUpTo(response, maxBytes)).text
}

async function readUpTo(response: Response, maxBytes: number): Promise<{ text: string; complete: boolean }> {
  const parts: Uint8Array[] = []
  let bytes = 0
  // All at once: decoding large bodies chunk by chunk takes three times as long.
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

/** Whether a content type is one of JSON. An answer without a content type may be JSON. */
export function isJsonType(contentType: string | null): boolean {
  return contentType === null || /^\s*application\/([\w.+-]+\+)?json\b/i.test(contentType)
}
