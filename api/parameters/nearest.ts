/**
 * Edits (insert, delete, replace, swap of neighbours) that turn one word into another; `limit` if they are at least as many.
 */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit
  let [beforeLast, last] = [[] as number[], Array.from({ length: b.length + 1 }, (_, j) => j)]
  let leastOfLast = 0
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    let least = i
    for (let j = 1; j <= b.length; j++) {
      const replaced = (last[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      let edits = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, replaced)
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      if (swapped) edits = Math.min(edits, (beforeLast[j - 2] ?? 0) + 1)
      row.push(edits)
      if (edits < least) least = edits
    }
    // No later row has fewer edits than the least of the last two.
    if (least >= limit && leastOfLast >= limit) return limit
    ;[beforeLast, last, leastOfLast] = [last, row, least]
  }
  return Math.min(limit, last[b.length] ?? limit)
}

/** More characters than a parameter or a member has: a longer word has no suggestion. */
const MAX_LENGTH = 40

/** The known word that was probably meant, or undefined when none is near: at most a third of it may differ. */
export function nearestWord(word: string, known: readonly string[]): string | undefined {
  if (word.length > MAX_LENGTH) return undefined
  const lower = word.toLowerCase()
  // More edits than the longest word allows are never accepted.
  const longest = known.reduce((most, { length }) => Math.max(most, length), 0)
  const tooMany = Math.max(1, Math.ceil(longest / 3)) + 1
  let best: { candidate: string; edits: number } | undefined
  for (const candidate of known) {
    const limit = best?.edits ?? tooMany
    const edits = editDistance(lower, candidate.toLowerCase(), limit)
    if (edits < limit) best = { candidate, edits }
  }
  return best && best.edits <= Math.max(1, Math.ceil(best.candidate.length / 3)) ? best.candidate : undefined
}

const lastPartOf = (path: string) => path.slice(Math.max(path.lastIndexOf('.'), path.lastIndexOf('/')) + 1)

/** A path as it is compared: `market_cap` and `marketcap` both mean `marketCap`. */
const foldPath = (path: string) => path.toLowerCase().replaceAll(/[^a-z0-9]/g, '')

/**
 * The known path, with dots or slashes between its parts, that was probably meant, or undefined. The last part alone is enough:
 * `price` means `financialData.price`. The first known path wins where several fit equally well.
 */
export function nearestPath(path: string, known: readonly string[]): string | undefined {
  const [whole, last] = [foldPath(path), foldPath(lastPartOf(path))]
  if (whole === '') return undefined
  const same = known.find((one) => foldPath(one) === whole) ?? known.find((one) => foldPath(lastPartOf(one)) === last)
  if (same !== undefined) return same
  const near = nearestWord(path, known)
  if (near !== undefined) return near
  const nearLast = nearestWord(lastPartOf(path), [...new Set(known.map(lastPartOf))])
  return nearLast && known.find((one) => lastPartOf(one) === nearLast)
}
