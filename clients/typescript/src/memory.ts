/** An answer as text, so that callers cannot modify the cached value. */
export interface CachedAnswer {
  readonly tag: string
  readonly text: string
  /** The media type. */
  readonly type: string
}

/** The response cache by URL, for answers of 304 Not Modified. */
export interface Memory {
  get(url: string): CachedAnswer | undefined
  set(url: string, answer: CachedAnswer): void
}

/** Creates a response cache with a budget in characters and least-recently-used eviction. */
export function createMemory(characters: number): Memory {
  const answers = new Map<string, CachedAnswer>()
  let size = 0
  const take = (url: string) => {
    const found = answers.get(url)
    if (found !== undefined && answers.delete(url)) size -= found.text.length
    return found
  }
  const put = (url: string, entry: CachedAnswer) => {
    answers.set(url, entry)
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
      for (const oldest of answers.keys()) {
        if (size <= characters) break
        take(oldest)
      }
    },
  }
}
