import { SIMULATION_START } from './market-process.ts'
import { toNoiseKey, unit } from './noise.ts'
import { DAY, type Space, type SpaceProposal, type SpaceVote, type WorldRegistry } from './world.ts'

/**
 * Spaces of DAOs: each makes a proposal every few weeks, and a part of its voters votes on it within days. What has
 * happened by `now` is there; the rest comes with time.
 */
export function createSimulatedSpaces(
  registry: WorldRegistry,
  seed: number,
): (id: string, now: number) => Space | null {
  const names = new Map(registry.daos.map(({ snapshotSpace, name }) => [snapshotSpace, name]))
  const invented = new Map<string, Happening>()
  return (id, now) => {
    const name = names.get(id)
    if (name === undefined) return null
    const known = invented.get(id)
    const happening = known !== undefined && known.until >= now ? known : invent(toNoiseKey(seed, `space ${id}`), now)
    invented.set(id, happening)
    const seconds = now / 1000
    const proposals = happening.proposals.filter(({ created }) => created <= seconds)
    return { id, name, proposals, votes: happening.votes.filter(({ created }) => created <= seconds) }
  }
}

interface Happening {
  /** Until when everything is invented, in Unix milliseconds. */
  readonly until: number
  readonly proposals: readonly SpaceProposal[]
  readonly votes: readonly SpaceVote[]
}

function invent(key: number, now: number): Happening {
  const until = now + 30 * DAY
  const step = DAY * (30 + 270 * unit(key, -1) ** 2)
  const crowd = Math.floor(20 + 240 * unit(key, -2) ** 2)
  const proposals: SpaceProposal[] = []
  const votes: SpaceVote[] = []
  for (let index = 0; ; index += 1) {
    const at = SIMULATION_START + step * (index + 0.8 * unit(key, index))
    if (at > until) return { until, proposals, votes }
    const created = Math.floor(at / 1000)
    const own = key ^ Math.imul(index + 1, 0x9e3779b1)
    const end = created + 5 * 86_400
    const id = toHex(own, 64)
    proposals.push({ id, title: `Proposal ${index + 1}`, author: toVoter(key, index % 7, own), created, end })
    votes.push(...inventVotes(key, own, crowd, { id, created, end }))
  }
}

/** Between a tenth and half of the voters take part, most of them early. */
function inventVotes(
  key: number,
  own: number,
  crowd: number,
  { id, created, end }: Pick<SpaceProposal, 'id' | 'created' | 'end'>,
): SpaceVote[] {
  const share = 0.1 + 0.4 * unit(own, -1)
  const votes: SpaceVote[] = []
  for (let voter = 0; voter < crowd; voter += 1) {
    if (unit(own, voter) >= share) continue
    const at = created + Math.floor((end - created) * unit(own ^ 1, voter) ** 2)
    const power = Math.round(1e6 * unit(own ^ 2, voter)) / 1e3
    votes.push({ id: toHex(own ^ 3 ^ voter, 64), voter: toVoter(key, voter, own), created: at, proposal: id, power })
  }
  return votes
}

function toHex(key: number, digits: number): string {
  const words = Array.from({ length: digits / 8 }, (_, word) => Math.floor(unit(key, word) * 0x1_0000_0000))
  return `0x${words.map((word) => word.toString(16).padStart(8, '0')).join('')}`
}

/** One account, spelled in capitals here and there: it stays one account. */
function toVoter(key: number, voter: number, own: number): string {
  const address = toHex(toNoiseKey(key, `voter ${voter}`), 40)
  return unit(own ^ 4, voter) < 0.5 ? address : `0x${address.slice(2).toUpperCase()}`
}
