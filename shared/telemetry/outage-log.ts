import type { Logger } from './log.ts'

/** Logs repeated failures once. */
export interface OutageLog {
  /** Logs the first failure of `about` at `level` and later ones at debug level. */
  failed(about: string, fields: object, message: string): void
  /** Marks `about`, or everything, as working: its next failure is logged at `level` again. */
  works(about?: string): void
}

/** An outage that lasts all night is logged once, not at every check. */
export function createOutageLog(log: Logger, level: 'warn' | 'error'): OutageLog {
  const failing = new Set<string>()
  return {
    failed: (about, fields, message) => {
      log[failing.has(about) ? 'debug' : level](fields, message)
      failing.add(about)
    },
    works: (about) => {
      if (about === undefined) failing.clear()
      else failing.delete(about)
    },
  }
}
