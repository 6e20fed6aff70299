import type { Provider } from '../exchange.ts'
import { answerHistory } from './coinmarketcap-history.ts'
import { answerInfo } from './coinmarketcap-info.ts'
import { answerLatest } from './coinmarketcap-latest.ts'
import { toAnswer, toFailure, toFailureOfStatus } from './coinmarketcap-reply.ts'

/** The rejected key, for tests of error 1001; any other key is accepted. */
export const INVALID_KEY = 'invalid'

/** CoinMarketCap Pro API. Source: docs/providers.md, section 1. */
export const coinmarketcap: Provider = {
  name: 'coinmarketcap',
  handle(request, world) {
    const key = request.headers['x-cmc_pro_api_key']
    if (key === undefined || key === '') return toFailure(1002, request.now)
    if (key === INVALID_KEY) return toFailure(1001, request.now)
    switch (request.path) {
      case '/v3/cryptocurrency/quotes/latest':
        return answerLatest(3, request, world)
      case '/v2/cryptocurrency/quotes/latest':
        return answerLatest(2, request, world)
      case '/v3/cryptocurrency/quotes/historical':
        return answerHistory(request, world)
      case '/v2/cryptocurrency/info':
        return answerInfo(request, world)
      default:
        return toFailure(404, request.now, 'Not Found')
    }
  },
  failure: toFailureOfStatus,
  empty: ({ path, now }) => toAnswer(path === '/v3/cryptocurrency/quotes/latest' ? '[]' : '{}', 1, now),
}
