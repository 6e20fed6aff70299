/** Counts requests by provider path, so that a test can assert "one request per batch". */
export interface RequestLog {
  /** Requests to one provider; with `path`, only those with a path that contains it. */
  count(provider: string, path?: string): number
  /** Every requested path, in the order of the first request. `path` has no query and starts after the mount. */
  all(): { provider: string; path: string; count: number }[]
  clear(): void
}

export interface RequestRecorder extends RequestLog {
  record(provider: string, path: string): void
}

export function createRequestLog(): RequestRecorder {
  const byPath = new Map<string, { provider: string; path: string; count: number }>()
  return {
    record(provider, path) {
      const key = `${provider} ${path}`
      const entry = byPath.get(key) ?? { provider, path, count: 0 }
      entry.count += 1
      byPath.set(key, entry)
    },
    count(provider, path = '') {
      let total = 0
      for (const entry of byPath.values()) {
        if (entry.provider === provider && entry.path.includes(path)) total += entry.count
      }
      return total
    },
    all: () => [...byPath.values()].map((entry) => ({ ...entry })),
    clear: () => byPath.clear(),
  }
}
