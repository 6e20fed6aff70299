import type UPlot from 'uplot'

const WIDEST = 14

/** Draws a candle for each point of four series: open, high, low, close. A bucket without an observation has none. */
export function drawCandles(plot: UPlot, colors: { readonly up: string; readonly down: string }): void {
  const [times = [], opens = [], highs = [], lows = [], closes = []] = plot.data
  const { ctx } = plot
  const [from, to] = plot.series[0]?.idxs ?? [0, times.length - 1]
  const toX = (time: number) => Math.round(plot.valToPos(time, 'x', true))
  const toY = (value: number) => Math.round(plot.valToPos(value, 'y', true))
  const step = times.length > 1 ? toX(times[from + 1] ?? 0) - toX(times[from] ?? 0) : WIDEST
  const width = Math.max(1, Math.min(WIDEST, Math.floor(step * 0.7)))
  ctx.save()
  ctx.beginPath()
  ctx.rect(plot.bbox.left, plot.bbox.top, plot.bbox.width, plot.bbox.height)
  ctx.clip()
  for (let at = from; at <= to; at += 1) {
    const [time, open, high, low, close] = [times[at], opens[at], highs[at], lows[at], closes[at]]
    if (time == null || open == null || high == null || low == null || close == null) continue
    const x = toX(time)
    ctx.fillStyle = close >= open ? colors.up : colors.down
    ctx.fillRect(x, toY(high), 1, Math.max(1, toY(low) - toY(high)))
    const top = Math.min(toY(open), toY(close))
    ctx.fillRect(x - Math.floor(width / 2), top, width, Math.max(1, Math.abs(toY(open) - toY(close))))
  }
  ctx.restore()
}
