import type { Candles } from './recorded-files.ts'
import { DAY, type History, HOUR, type MarketChart, percentChange, type Quote } from './world.ts'

interface Supply {
  readonly circulating: number | null
  readonly total: number | null
}

/**
 * Candles as quotes: each open is an exact observation at its candle's open time. `volume24h` is the sum of base volume
 * x open (to the cent) over the 24 hours before, null until a full day is recorded; percent changes likewise.
 */
export function toCandleHistory(candles: Candles, supply: Supply): History {
  const { at, open, volume, step } = candles
  const first = at[0] ?? Number.NaN
  const centsBefore = new Float64Array(at.length)
  for (let index = 1; index < at.length; index += 1) {
    const cents = Math.round((volume[index - 1] ?? 0) * (open[index - 1] ?? 0) * 100)
    centsBefore[index] = (centsBefore[index - 1] ?? 0) + cents
  }
  const openAt = (time: number): number | null => open[(time - first) / step] ?? null

  function quoteOf(index: number): Quote | null {
    const time = at[index]
    const price = open[index]
    if (time === undefined || price === undefined) return null
    const dayBefore = centsBefore[index - DAY / step]
    return {
      at: time,
      price,
      volume24h: dayBefore === undefined ? null : ((centsBefore[index] ?? 0) - dayBefore) / 100,
      marketCap: supply.circulating === null ? null : price * supply.circulating,
      circulatingSupply: supply.circulating,
      totalSupply: supply.total,
      change1h: percentChange(price, openAt(time - HOUR)),
      change24h: percentChange(price, openAt(time - DAY)),
      change7d: percentChange(price, openAt(time - 7 * DAY)),
      change30d: percentChange(price, openAt(time - 30 * DAY)),
    }
  }
  return {
    first,
    firstIn(from, to) {
      const quote = quoteOf(Math.max(0, Math.ceil((from - first) / step)))
      return quote !== null && quote.at < to ? quote : null
    },
    lastAt: (time) => (time < first ? null : quoteOf(Math.min(at.length - 1, Math.floor((time - first) / step)))),
  }
}

/** A market chart as quotes, at the recorded times; the recording has no supplies. */
export function toChartHistory(chart: MarketChart): History {
  const times = chart.prices.map(([time]) => time)
  const indexOf = new Map(times.map((time, index) => [time, index]))
  const change = (price: number, time: number): number | null => {
    return percentChange(price, chart.prices[indexOf.get(time) ?? -1]?.[1] ?? null)
  }
  function quoteOf(index: number): Quote | null {
    const point = chart.prices[index]
    if (!point) return null
    const [time, price] = point
    return {
      at: time,
      price,
      volume24h: chart.total_volumes[index]?.[1] ?? null,
      marketCap: chart.market_caps[index]?.[1] ?? null,
      circulatingSupply: null,
      totalSupply: null,
      change1h: change(price, time - HOUR),
      change24h: change(price, time - DAY),
      change7d: change(price, time - 7 * DAY),
      change30d: change(price, time - 30 * DAY),
    }
  }
  return {
    first: times[0] ?? Number.NaN,
    firstIn(from, to) {
      const quote = quoteOf(times.findIndex((time) => time >= from))
      return quote !== null && quote.at < to ? quote : null
    },
    lastAt: (time) => quoteOf(times.findLastIndex((existing) => existing <= time)),
  }
}

/** Joins two recordings of one token that do not overlap, the older one first. */
export function joinHistories(older: History | null, newer: History | null): History | null {
  if (older === null || newer === null) return older ?? newer
  return {
    first: older.first,
    firstIn: (from, to) => older.firstIn(from, to) ?? newer.firstIn(from, to),
    lastAt: (time) => newer.lastAt(time) ?? older.lastAt(time),
  }
}
