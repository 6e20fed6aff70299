/** What a text says as JSON; undefined, which no JSON is, for one that is none. A schema then says what it lacks. */
export function toJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
