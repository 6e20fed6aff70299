import { isThereAt } from '../../shared/registry/ends.ts'
import type { Dao, Token } from '../../shared/registry/entities.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { Collector, Entity, Job } from '../job/define-job.ts'

/** Every provider with any data has data for these: they are large, old, and listed on every exchange. */
const PREFERRED = ['UNI', 'AAVE', 'ENS', 'LDO', 'uniswap', 'aave', 'ens', 'lido']

/** Returns the entities to probe: one, or one per chain if each chain has its own host. */
export function toSamples(job: Job, { covers, provider }: Collector, registry: Registry, now: number): Entity[] {
  const covered = job.entities(registry).filter((entity) => isThereAt(entity, now) && covers(entity))
  const sorted = [...covered].sort((a, b) => toRank(a) - toRank(b))
  const isByChain = job.providers.some(({ name, hostPerChain }) => name === provider && hostPerChain)
  if (!isByChain) return sorted.slice(0, 1)
  const byChain = new Map<string, Entity>()
  for (const { chain, entity } of sorted.flatMap(toHosted).sort((a, b) => a.firstBlock - b.firstBlock))
    if (!byChain.has(chain)) byChain.set(chain, entity)
  return [...new Set(byChain.values())]
}

interface Hosted {
  readonly chain: string
  readonly entity: Entity
  /** The first block that is read for the entity. Reading it shows whether the node still has old blocks. */
  readonly firstBlock: number
}

/** Returns the chains that an entity is read from: its own, or those of its governors. */
function toHosted(entity: Entity): Hosted[] {
  const { governors, chain } = entity as Partial<Dao & Token>
  if (governors === undefined) return [{ chain: chain ?? '', entity, firstBlock: 0 }]
  return governors.map((governor) => ({ chain: governor.chain, entity, firstBlock: governor.fromBlock }))
}

function toRank(entity: Entity): number {
  const rank = PREFERRED.indexOf(String(Reflect.get(entity, 'symbol') ?? Reflect.get(entity, 'slug') ?? ''))
  return rank === -1 ? PREFERRED.length : rank
}
