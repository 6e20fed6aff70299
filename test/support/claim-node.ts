import { setImmediate } from 'node:timers/promises'
import type { HttpClients, HttpRequest } from '../../workers/http/client.ts'
import type { Chain } from '../upstream/chain.ts'
import { rpc } from '../upstream/providers/rpc.ts'
import type { World } from '../upstream/world.ts'
import type { ClaimClock } from './claim-model.ts'

/** A node of Ethereum that answers in memory, as late as the clock says. */
export function createClaimNode(chain: Chain, clock: ClaimClock): HttpClients {
  const world = { chain: () => chain, assets: [] } as unknown as World
  const ask = async ({ body }: HttpRequest) => {
    const request = {
      method: 'POST',
      path: '/ethereum',
      query: new URLSearchParams(),
      headers: {},
      plan: 'open',
    } as const
    const reply = await rpc.handle({ ...request, body: JSON.stringify(body), now: clock.now - clock.lag }, world)
    return JSON.parse(reply.body) as unknown
  }
  return {
    open: ({ provider }) => ({
      text: async () => undefined,
      json: async (request) => {
        await setImmediate()
        request.signal.throwIfAborted()
        return provider === 'rpc-ethereum' ? ask(request) : { coins: {} }
      },
    }),
  }
}
