/** Lines of columns as wide as their widest cell, the first line being the titles. */
export function toTable(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [titles, ...rows]
  const widths = titles.map((_, column) =>
    lines.reduce((width, cells) => Math.max(width, cells[column]?.length ?? 0), 0),
  )
  return lines
    .map((cells) =>
      cells
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/** A time in Unix milliseconds as people read it: to the second, UTC. */
export function toShortTime(ms: number): string {
  return new Date(ms).toISOString().replace('T', ' ').slice(0, 19)
}

/** A duration in seconds, in its two largest units: `3d 4h`, `5m 20s`. */
export function toShortDuration(seconds: number): string {
  const units = [
    ['d', 86_400],
    ['h', 3600],
    ['m', 60],
    ['s', 1],
  ] as const
  const first = units.findIndex(([, size]) => seconds >= size)
  if (first === -1) return '0s'
  let remaining = Math.floor(seconds)
  const parts = units.slice(first, first + 2).map(([unit, size]) => {
    const count = Math.floor(remaining / size)
    remaining -= count * size
    return `${count}${unit}`
  })
  return parts.filter((part, index) => index === 0 || !part.startsWith('0')).join(' ')
}
