/** Edits (insert, delete, replace, swap of neighbours) that turn one word into another. */
function editDistance(a: string, b: string): number {
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, j) => j)]
  const at = (i: number, j: number) => rows[i]?.[j] ?? 0
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    rows.push(row)
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1]
      let edits = Math.min(at(i - 1, j) + 1, at(i, j - 1) + 1, at(i - 1, j - 1) + (same ? 0 : 1))
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      if (swapped) edits = Math.min(edits, at(i - 2, j - 2) + 1)
      row.push(edits)
    }
  }
  return at(a.length, b.length)
}

/** The known word that was probably meant, or undefined when none is near: at most a third of it may differ. */
export function nearestWord(word: string, known: readonly string[]): string | undefined {
  // No parameter has such a long name, and the table of edits grows with the word.
  if (word.length > 40) return undefined
  const lower = word.toLowerCase()
  const ranked = known.map((candidate) => ({ candidate, edits: editDistance(lower, candidate.toLowerCase()) }))
  ranked.sort((a, b) => a.edits - b.edits)
  const best = ranked[0]
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
