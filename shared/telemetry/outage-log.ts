import type { Logger } from './log.ts'

/** Tells of failures that come again with every look. */
export interface OutageLog {
  /** The first failure of `about` is told at `level`, those that follow it only to whoever debugs. */
  failed(about: string, told: object, message: string): void
  /** It works, or all of it where `about` is not given: the next failure is told again. */
  works(about?: string): void
}

/** A store that is away all night is told of once, not with each look. */
export function createOutageLog(log: Logger, level: 'warn' | 'error'): OutageLog {
  const failing = new Set<string>()
  return {
    failed: (about, told, message) => {
      log[failing.has(about) ? 'debug' : level](told, message)
      failing.add(about)
    },
    works: (about) => {
      if (about === undefined) failing.clear()
      else failing.delete(about)
    },
  }
}
