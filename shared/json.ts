import type { z } from 'zod'

/** Parses JSON; returns undefined for invalid JSON, so that a schema reports it. */
export function toJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/**
 * Parses stored JSON text by its schema. If the text is invalid JSON or has another version's format, returns undefined
 * and calls `onUnreadable` with the reason. The caller continues without this value.
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
