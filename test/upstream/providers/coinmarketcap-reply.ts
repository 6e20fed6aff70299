import { type Reply, rawJsonReply } from '../exchange.ts'

/** CoinMarketCap's own codes and texts. Source: docs/providers.md, section 1.4. */
const FAILURES: Readonly<Record<number, readonly [status: number, message: string]>> = {
  400: [400, 'Invalid value'],
  500: [500, 'An internal server error occurred'],
  1001: [401, 'This API Key is invalid.'],
  1002: [401, 'API key missing.'],
  1003: [402, 'Your API Key must be activated. Please go to pro.coinmarketcap.com/account/plan.'],
  1005: [403, 'An API Key is required for this call.'],
  1006: [403, "Your API Key subscription plan doesn't support this endpoint."],
  1008: [429, "You've exceeded your API Key's HTTP request rate limit. Rate limits reset every minute."],
}
const CODE_OF_STATUS: Readonly<Record<number, number>> = { 401: 1001, 402: 1003, 403: 1005, 429: 1008 }

/** A successful response with data that is JSON text already. */
export function toAnswer(dataJson: string, creditCount: number, now: number): Reply {
  return rawJsonReply(`{"status":${toStatus(now, 0, null, creditCount)},"data":${dataJson}}`)
}

/** An error response: status without data. `code` is one of CoinMarketCap's, `message` overrides its usual text. */
export function toFailure(code: number, now: number, message?: string): Reply {
  const [status, text] = FAILURES[code] ?? [code, `Error ${code}`]
  return rawJsonReply(`{"status":${toStatus(now, code, message ?? text, 0)}}`, status)
}

/** The error response for an HTTP status. */
export function toFailureOfStatus(status: number, now: number): Reply {
  return { ...toFailure(CODE_OF_STATUS[status] ?? status, now), status }
}

function toStatus(now: number, code: number, message: string | null, creditCount: number): string {
  return JSON.stringify({
    timestamp: new Date(now).toISOString(),
    error_code: code,
    error_message: message,
    elapsed: 10,
    credit_count: creditCount,
    ...(code === 0 ? { notice: null } : {}),
  })
}
