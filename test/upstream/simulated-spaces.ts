import { SIMULATION_START } from './market-process.ts'
import { toNoiseKey, unit } from './noise.ts'
import { DAY, type Space, type SpaceProposal, type SpaceVote, type WorldRegistry } from './world.ts'

/**
 * Spaces of DAOs: each has a proposal every few weeks, on which a part of its voters votes within days. Only events up
 * to `now` exist.
 */
export function createSimulatedSpaces(
  registry: WorldRegistry,
  seed: number,
): (id: string, now: number) => Space | null {
  const names = new Map(registry.daos.map(({ snapshotSpace, name }) => [snapshotSpace, name]))
  // A client requests a space page by page at one time.
  const spaces = new Map<string, { readonly now: number; readonly space: Space }>()
  return (id, now) => {
    const name = names.get(id)
    if (name === undefined) return null
    const last = spaces.get(id)
    if (last?.now === now) return last.space
    const happening = inventUntil(toNoiseKey(seed, `space ${id}`), now)
    const seconds = now / 1000
    const votes = happening.votes.filter(({ created }) => created <= seconds)
    const proposals = happening.proposals.filter(({ created }) => created <= seconds)
    const space = { id, name, proposals: withScores(proposals, votes, seconds), votes }
    spaces.set(id, { now, space })
    return space
  }
}

interface Happening {
  /** End of the generated events, in Unix milliseconds. */
  readonly until: number
  readonly proposals: readonly ProposalDraft[]
  readonly votes: readonly SpaceVote[]
}

/** A proposal without the results of its votes. */
type ProposalDraft = Omit<SpaceProposal, 'scores' | 'scoresTotal' | 'scoresState' | 'votes'>

/** Generated events, shared by all worlds of this process. */
const invented = new Map<number, Happening>()

function inventUntil(key: number, now: number): Happening {
  const existing = invented.get(key)
  if (existing !== undefined && existing.until >= now) return existing
  const happening = invent(key, now)
  invented.set(key, happening)
  return happening
}

function invent(key: number, now: number): Happening {
  const until = now + 30 * DAY
  const step = DAY * (30 + 270 * unit(key, -1) ** 2)
  const crowd = Math.floor(20 + 240 * unit(key, -2) ** 2)
  const proposals: ProposalDraft[] = []
  const votes: SpaceVote[] = []
  for (let index = 0; ; index += 1) {
    const at = SIMULATION_START + step * (index + 0.8 * unit(key, index))
    if (at > until) return { until, proposals, votes }
    const created = Math.floor(at / 1000)
    const own = key ^ Math.imul(index + 1, 0x9e3779b1)
    const end = created + 5 * 86_400
    const id = toHex(own, 64)
    const type = TYPES[index % TYPES.length] ?? 'basic'
    const base = { id, title: `Proposal ${index + 1}`, author: toVoter(key, index % 7, own), type, choices: CHOICES }
    const proposal = {
      ...base,
      created,
      start: created + 3600,
      end,
      quorum: 1000 * (index % 3),
      flagged: index % 23 === 22,
    }
    proposals.push(proposal)
    votes.push(...inventVotes(key, own, crowd, proposal))
  }
}

const TYPES = ['basic', 'single-choice', 'approval', 'ranked-choice', 'weighted', 'quadratic']
const CHOICES = ['For', 'Against', 'Abstain']

/** A choice in the form of each voting type: a number, a list of numbers, or weights by number. */
function toChoice(type: string, first: number): unknown {
  const second = (first % CHOICES.length) + 1
  if (type === 'approval') return [first, second]
  if (type === 'ranked-choice') return [first, second, (second % CHOICES.length) + 1]
  if (type === 'weighted' || type === 'quadratic') return { [first]: 2, [second]: 1 }
  return first
}

/**
 * The choice that a vote is counted for, as in most voting types: the only one, the first, or the one with the largest
 * weight.
 */
function toFirst(choice: unknown): number {
  if (Array.isArray(choice)) return Number(choice[0])
  if (typeof choice !== 'object' || choice === null) return Number(choice)
  const [most] = Object.entries(choice).sort(([, a], [, b]) => Number(b) - Number(a))
  return Number(most?.[0])
}

/** Scores become final some hours after the end, with a different delay per proposal. */
const toScoresState = ({ created, end }: ProposalDraft, seconds: number) =>
  seconds < end + 3600 * (1 + (created % 5)) ? ('pending' as const) : ('final' as const)

function withScores(
  proposals: readonly ProposalDraft[],
  votes: readonly SpaceVote[],
  seconds: number,
): SpaceProposal[] {
  const counted = new Map(proposals.map(({ id, choices }) => [id, { scores: choices.map(() => 0), votes: 0 }]))
  for (const { proposal, choice, power } of votes) {
    const one = counted.get(proposal)
    if (one === undefined) continue
    one.votes += 1
    one.scores[toFirst(choice) - 1] = (one.scores[toFirst(choice) - 1] ?? 0) + power
  }
  return proposals.map((createdValue) => {
    const { scores, votes: count } = counted.get(createdValue.id) ?? { scores: [], votes: 0 }
    const scoresTotal = scores.reduce((sum, one) => sum + one, 0)
    return { ...createdValue, scores, scoresTotal, scoresState: toScoresState(createdValue, seconds), votes: count }
  })
}

/** Between a tenth and half of the voters take part, most of them early. */
function inventVotes(key: number, own: number, crowd: number, { id, start, end, type }: ProposalDraft): SpaceVote[] {
  const share = 0.1 + 0.4 * unit(own, -1)
  const votes: SpaceVote[] = []
  for (let voter = 0; voter < crowd; voter += 1) {
    if (unit(own, voter) >= share) continue
    const created = start + Math.floor((end - start) * unit(own ^ 1, voter) ** 2)
    const power = Math.round(1e6 * unit(own ^ 2, voter)) / 1e3
    const choice = toChoice(type, 1 + Math.floor(CHOICES.length * unit(own ^ 5, voter)))
    votes.push({
      id: toHex(own ^ 3 ^ voter, 64),
      voter: toVoter(key, voter, own),
      created,
      proposal: id,
      choice,
      power,
    })
  }
  return votes
}

function toHex(key: number, digits: number): string {
  const words = Array.from({ length: digits / 8 }, (_, word) => Math.floor(unit(key, word) * 0x1_0000_0000))
  return `0x${words.map((word) => word.toString(16).padStart(8, '0')).join('')}`
}

/** Some addresses are in upper case, to test that the spelling of an account does not matter. */
function toVoter(key: number, voter: number, own: number): string {
  const address = toHex(toNoiseKey(key, `voter ${voter}`), 40)
  return unit(own ^ 4, voter) < 0.5 ? address : `0x${address.slice(2).toUpperCase()}`
}
