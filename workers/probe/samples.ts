import { isThereAt } from '../../shared/registry/ends.ts'
import type { Dao, Token } from '../../shared/registry/entities.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { Collector, Entity, Job } from '../job/define-job.ts'

/** Of these every provider has something, if it has anything: large, old, and on every exchange. */
const WELL_KNOWN = ['UNI', 'AAVE', 'ENS', 'LDO', 'uniswap', 'aave', 'ens', 'lido']

/** Whom a provider is asked about: one entity, or one of each chain where a chain has a host of its own. */
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
  /** The first block that is read of it: a node that no longer has it is told of. */
  readonly firstBlock: number
}

/** The chains that an entity is read from: its own, or those of its governors. */
function toHosted(entity: Entity): Hosted[] {
  const { governors, chain } = entity as Partial<Dao & Token>
  if (governors === undefined) return [{ chain: chain ?? '', entity, firstBlock: 0 }]
  return governors.map((governor) => ({ chain: governor.chain, entity, firstBlock: governor.fromBlock }))
}

function toRank(entity: Entity): number {
  const rank = WELL_KNOWN.indexOf(String(Reflect.get(entity, 'symbol') ?? Reflect.get(entity, 'slug') ?? ''))
  return rank === -1 ? WELL_KNOWN.length : rank
}
