import type { Governor } from '../../shared/registry/entities.ts'
import { loadRegistry, type Registry } from '../../shared/registry/registry.ts'
import type { Chain, ChainLog, NodeHabits } from '../upstream/chain.ts'
import { createLoggedChain } from '../upstream/logged-chain.ts'
import { FIRST_BLOCK, hashOf, START } from '../upstream/small-chain.ts'

const SECONDS_PER_BLOCK = 12

/**
 * The shipped registry with all governors created in the first block of the small chain. `change` may modify the
 * governors of a DAO.
 */
export function toYoungRegistry(
  change: (slug: string, governors: Governor[]) => Governor[] = (_, own) => own,
): Registry {
  const registry = loadRegistry()
  const daos = registry.daos.map((dao) => ({
    ...dao,
    votingToken: dao.votingToken && {
      ...dao.votingToken,
      fromBlock: dao.votingToken.chain === 'ethereum' ? FIRST_BLOCK : 0,
    },
    governors: change(
      dao.slug,
      dao.governors.map((one) => ({ ...one, fromBlock: one.chain === 'ethereum' ? FIRST_BLOCK : 0 })),
    ),
  }))
  return {
    ...registry,
    daos,
    daoById: new Map(daos.map((dao) => [dao.id, dao])),
    daoBySlug: new Map(daos.map((dao) => [dao.slug, dao])),
  }
}

export function governorOf(registry: Registry, slug: string, family: string) {
  const governor = registry.daoBySlug.get(slug)?.governors.find((one) => one.family === family)
  if (governor === undefined) throw new Error(`${slug} has no governor of the family ${family}`)
  return governor
}

/** A log in the n-th block after the first. The log index distinguishes logs of one block. */
export function logAt(
  n: number,
  address: string,
  event: Pick<ChainLog, 'topics' | 'data'>,
  more: Partial<ChainLog> = {},
): ChainLog {
  const logIndex = more.logIndex ?? 0
  return {
    ...{ address, ...event, blockNumber: FIRST_BLOCK + n, transactionIndex: 0 },
    ...{ transactionHash: hashOf(n * 1000 + logIndex), logIndex, ...more },
  }
}

/** The time of the n-th block after the first. */
export const timeAt = (n: number) => new Date((START + n * SECONDS_PER_BLOCK) * 1000).toISOString()

/** A chain with these logs and a block every 12 seconds, also long before the first log. */
export function toGovernorChain(logs: readonly ChainLog[], { habits = {} }: { habits?: NodeHabits } = {}): Chain {
  const times = new Map([-100_000, 1_000_000].map((n) => [FIRST_BLOCK + n, START + n * SECONDS_PER_BLOCK]))
  return createLoggedChain({ logs, times, pools: [], habits })
}
