import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout } from 'node:timers/promises'

export interface SlotProvider {
  readonly url: string
  /** Sets the delay of later responses. */
  answerAfter(ms: number): void
  /** Sets the time of later quotes, in Unix milliseconds. A slot has no use for older ones. */
  quoteAt(at: number): void
  close(): Promise<void>
}

/** Serves CoinMarketCap's latest quotes of any ids, and Moralis' holders of any token; nothing else. */
export async function startSlotProvider(): Promise<SlotProvider> {
  let waitMs = 0
  let quotedAt = 0
  const server = createServer(async (request, response) => {
    const url = new URL(request.url ?? '/', 'http://provider')
    const body = toAnswer(url, quotedAt)
    if (body === undefined) return void response.writeHead(404).end()
    if (waitMs > 0) await setTimeout(waitMs)
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    answerAfter: (ms) => {
      waitMs = ms
    },
    quoteAt: (at) => {
      quotedAt = at
    },
    close: async () => {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

function toAnswer({ pathname, searchParams }: URL, quotedAt: number): object | undefined {
  if (pathname.endsWith('/quotes/latest')) return toQuotes(searchParams.get('id')?.split(',') ?? [], quotedAt)
  if (pathname.endsWith('/owners')) return OWNERS
  return pathname.endsWith('/holders') ? { totalHolders: 1_023_500 } : undefined
}

const OWNERS = {
  cursor: null,
  result: Array.from({ length: 100 }, (_, place) => ({
    owner_address: `0x${String(place).padStart(40, '0')}`,
    balance_formatted: String(1_000_000.123_456 - place),
    balance: null,
    usd_value: String(2_345_678.9 - place),
    percentage_relative_to_total_supply: 0.5,
  })),
}

function toQuotes(ids: readonly string[], quotedAt: number): object {
  const data = ids.map((id) => {
    const price = 1 + (Number(id) % 97) / 7
    const quote = {
      symbol: 'USD',
      price,
      volume_24h: price * 51_234.5,
      market_cap: price * 760_000_000,
      percent_change_1h: 0.123456789,
      percent_change_24h: -2.3456789,
      percent_change_7d: 3.456789,
      percent_change_30d: -4.56789,
      last_updated: new Date(quotedAt).toISOString(),
    }
    return { id: Number(id), total_supply: 1.3e9, circulating_supply: 760_000_000, max_supply: null, quote: [quote] }
  })
  return { status: { error_code: 0 }, data }
}
