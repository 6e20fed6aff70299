import type { z } from 'zod'

/** What a text says as JSON; undefined, which no JSON is, for one that is none. A schema then says what it lacks. */
export function toJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/**
 * Parses stored JSON text by its schema. Returns undefined for text that another version wrote in another form, or that
 * is no JSON, and calls `onUnreadable` with the reason: the caller goes on without this one value.
 */
export function parseStored<S extends z.ZodType>(
  schema: S,
  text: string,
  onUnreadable?: (reason: string) => void,
): z.output<S> | undefined {
  const { success, data, error } = schema.safeParse(toJson(text))
  if (success) return data
  onUnreadable?.(error.message)
  return undefined
}
