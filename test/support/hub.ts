import { text } from 'node:stream/consumers'
import { startProviderServer } from '../provider-server.ts'
import type { Reply } from '../upstream/exchange.ts'
import { snapshot } from '../upstream/providers/snapshot.ts'
import { NO_SOCIALS } from '../upstream/socials.ts'
import type { Space, SpaceProposal, SpaceVote, World } from '../upstream/world.ts'

/** An empty world. */
export const NOTHING: World = {
  assets: [],
  socials: NO_SOCIALS,
  listing: () => null,
  history: () => null,
  chart: () => null,
  holders: () => null,
  profile: () => null,
  space: () => null,
  treasury: () => null,
  transfers: () => [],
  treasuries: () => [],
  protocols: () => [],
  tvlSeries: () => [],
  chain: () => null,
}

/** The query of a request: the name of its operation, and its variables. */
export interface HubQuery {
  readonly name: string
  readonly variables: { readonly ids?: readonly string[] }
}

/**
 * A Snapshot hub with one space on a free port. Replies pushed to `next` are sent once instead, and replies of
 * `intercept` always. `queries` has every query.
 */
export async function startHub(space: Space, intercept: (query: HubQuery) => Reply | undefined = () => undefined) {
  const next: Reply[] = []
  const queries: HubQuery[] = []
  const toQuery = (body: string): HubQuery => {
    const { query, variables } = JSON.parse(body) as { query: string; variables: HubQuery['variables'] }
    const one = { name: /^query (\w+)/.exec(query)?.[1] ?? '', variables }
    queries.push(one)
    return one
  }
  const answer = async (path: string, method: string, headers: object, body: string): Promise<Reply> =>
    [next.shift(), intercept(toQuery(body))].find((reply) => reply !== undefined) ??
    snapshot.handle(
      { method, path, query: new URLSearchParams(), headers: { ...headers }, body, now: 0, plan: 'open' },
      { ...NOTHING, space: (id) => (id === space.id ? space : null) },
    )
  const server = await startProviderServer((request, response, { pathname }) => {
    const { method = 'GET', headers } = request
    text(request)
      .then((body) => answer(pathname, method, headers, body))
      .then((reply) => response.writeHead(reply.status, reply.headers).end(reply.body))
      .catch((error: unknown) => response.destroy(error as Error))
  })
  return { ...server, next, queries }
}

/** Base time of space tests, in Unix seconds. */
export const HUB_START = Date.parse('2024-01-01T00:00:00Z') / 1000

/** A proposal without votes. */
export function toProposal(createdValue: Partial<SpaceProposal> = {}): SpaceProposal {
  const question = { title: 'One', type: 'basic', choices: ['For', 'Against', 'Abstain'], quorum: 0 }
  const author = `0x${'a'.repeat(40)}`
  const counted = { scores: [], scoresTotal: 0, votes: 0 }
  return {
    id: '0xproposal',
    author,
    created: HUB_START + 90,
    start: HUB_START + 90,
    end: HUB_START + 300,
    ...question,
    ...counted,
    ...createdValue,
  }
}

/** `count` votes of different voters on one proposal, all created in one second. */
export function toVotes(count: number, created: number): SpaceVote[] {
  return Array.from({ length: count }, (_, index) => {
    const id = `0x${String(created).padStart(32, '0')}${String(index).padStart(32, '0')}`
    return { id, voter: `0x${id.slice(-40)}`, created, proposal: '0xproposal', choice: 1, power: 1 }
  })
}
