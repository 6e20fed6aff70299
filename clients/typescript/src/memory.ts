/** An answer as it came: text, so that nobody can change what is kept. */
export interface Kept {
  readonly tag: string
  readonly text: string
  /** Its media type. */
  readonly type: string
}

/** Answers by address, for when the service says that nothing changed. */
export interface Memory {
  get(url: string): Kept | undefined
  set(url: string, kept: Kept): void
}

/** Keeps so many characters of answers, those that were used last. */
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
