/** An answer as text, so that callers cannot modify the cached value. */
export interface Kept {
  readonly tag: string
  readonly text: string
  /** The media type. */
  readonly type: string
}

/** The response cache by URL, for answers of 304 Not Modified. */
export interface Memory {
  get(url: string): Kept | undefined
  set(url: string, kept: Kept): void
}

/** Creates a response cache with a budget in characters and least-recently-used eviction. */
export function createMemory(characters: number): Memory {
  const kept = new Map<string, Kept>()
  let size = 0
  const take = (url: string) => {
    const found = kept.get(url)
    if (found !== undefined && kept.delete(url)) size -= found.text.length
    return found
  }
  const put = (url: string, entry: Kept) => {
    kept.set(url, entry)
    size += entry.text.length
  }
  return {
    get: (url) => {
      const found = take(url)
      if (found !== undefined) put(url, found)
      return found
    },
    set: (url, entry) => {
      take(url)
      if (entry.text.length > characters) return
      put(url, entry)
      for (const oldest of kept.keys()) {
        if (size <= characters) break
        take(oldest)
      }
    },
  }
}
