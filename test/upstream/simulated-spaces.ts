import type { Dao } from '../../shared/registry/entities.ts'
import { type Electorate, inventElectorate, toHex, toPower } from './electorate.ts'
import { SIMULATION_START } from './market-process.ts'
import { toNoiseKey, unit } from './noise.ts'
import { type WrittenProposal, writeProposal } from './proposal-texts.ts'
import { toWorth } from './token-facts.ts'
import { DAY, type Space, type SpaceProposal, type SpaceVote, type WorldRegistry } from './world.ts'

/**
 * Spaces of DAOs: each has a proposal every few weeks, on which a part of its voters votes within days. Only events up
 * to `now` exist.
 */
export function createSimulatedSpaces(
  registry: WorldRegistry,
  seed: number,
): (id: string, now: number) => Space | null {
  const symbols = new Map(registry.tokens.map(({ id, symbol }) => [id, symbol]))
  const daos = new Map(registry.daos.map((dao) => [dao.snapshotSpace, dao]))
  // A client requests a space page by page within a few seconds.
  const spaces = new Map<string, { readonly seconds: number; readonly space: Space }>()
  return (id, now) => {
    const dao = daos.get(id)
    if (dao === undefined) return null
    const seconds = Math.floor(now / 1000)
    const last = spaces.get(id)
    if (last?.seconds === seconds) return last.space
    const symbol = dao.token === null ? undefined : symbols.get(dao.token)
    const happening = inventUntil({ seed, key: toNoiseKey(seed, `space ${id}`), dao, symbol }, now)
    const votes = happening.votes.slice(0, findEnd(happening.votes, seconds))
    const proposals = happening.proposals.filter(({ created }) => created <= seconds)
    const space = { id, name: dao.name, proposals: withScores(proposals, votes, seconds), votes }
    spaces.set(id, { seconds, space })
    return space
  }
}

/** Index of the first vote after a time, in Unix seconds. */
function findEnd(votes: readonly SpaceVote[], seconds: number): number {
  let [from, to] = [0, votes.length]
  while (from < to) {
    const middle = (from + to) >> 1
    if ((votes[middle]?.created ?? 0) <= seconds) from = middle + 1
    else to = middle
  }
  return from
}

/** A DAO with more voters has a proposal about every month, others every few months. */
const LARGE = 150

interface SpaceFacts {
  readonly seed: number
  readonly key: number
  readonly dao: Dao
  /** Symbol of the DAO's token. */
  readonly symbol: string | undefined
}

interface Happening {
  /** End of the generated events, in Unix milliseconds. */
  readonly until: number
  readonly proposals: readonly ProposalDraft[]
  /** By creation, as the hub sorts them. */
  readonly votes: readonly SpaceVote[]
}

/** A proposal without the results of its votes. */
type ProposalDraft = Omit<SpaceProposal, 'scores' | 'scoresTotal' | 'scoresState' | 'votes'>

/** Generated events, shared by all worlds of this process. */
const invented = new Map<number, Happening>()

function inventUntil(facts: SpaceFacts, now: number): Happening {
  const existing = invented.get(facts.key)
  if (existing !== undefined && existing.until >= now) return existing
  const happening = invent(facts, now)
  invented.set(facts.key, happening)
  return happening
}

function invent({ seed, key, dao, symbol }: SpaceFacts, now: number): Happening {
  const until = now + 30 * DAY
  const electorate = inventElectorate(seed, dao.slug, symbol)
  const isLarge = electorate.length > LARGE
  const step = DAY * (isLarge ? 36 + 10 * unit(key, -1) : 40 + 80 * unit(key, -1) ** 2)
  const proposer = { name: dao.name, symbol: symbol ?? dao.name, worth: toWorth(symbol) }
  const proposals: ProposalDraft[] = []
  const votes: SpaceVote[] = []
  for (let index = 0; ; index += 1) {
    const at = SIMULATION_START + step * (index + 0.8 * unit(key, index))
    if (at > until) break
    const created = Math.floor(at / 1000)
    const own = key ^ Math.imul(index + 1, 0x9e3779b1)
    const end = created + 5 * 86_400
    const written = writeProposal(own, proposer, { number: index + 1, at: created, onlyYesOrNo: false })
    const proposal = {
      ...{
        id: `0x${toHex(own, 8)}`,
        title: written.title,
        body: written.body,
        author: toSpelling(electorate, index % 7, own),
      },
      ...{ type: written.type, choices: written.choices, created, start: created + 3600, end },
      quorum: toQuorum(electorate, index),
      flagged: index % 23 === 22,
    }
    proposals.push(proposal)
    votes.push(...inventVotes(electorate, own, proposal, written))
  }
  votes.sort((a, b) => a.created - b.created || (a.id < b.id ? -1 : 1))
  return { until, proposals, votes }
}

/** Two of three proposals have a quorum: a round number that most votes reach. */
function toQuorum(electorate: Electorate, index: number): number {
  if (index % 3 === 0) return 0
  const strongest = (electorate[0]?.power ?? 1) * (index % 3 === 1 ? 0.5 : 1)
  return Number(strongest.toPrecision(1))
}

/** A choice in the form of each voting type: a number, a list of numbers, or weights by number. */
function toChoice(type: string, first: number, count: number): unknown {
  const second = (first % count) + 1
  if (type === 'approval') return [first, second]
  if (type === 'ranked-choice') return Array.from({ length: count }, (_, at) => ((first - 1 + at) % count) + 1)
  if (type === 'weighted' || type === 'quadratic') return { [first]: 2, [second]: 1 }
  return first
}

/**
 * The choice that a vote is counted for, as in most voting types: the only one, the first, or the one with the largest
 * weight.
 */
function toFirst(choice: unknown): number {
  if (typeof choice === 'number') return choice
  if (Array.isArray(choice)) return Number(choice[0])
  const [most] = Object.entries(choice as object).sort(([, a], [, b]) => Number(b) - Number(a))
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
    const at = toFirst(choice) - 1
    one.scores[at] = (one.scores[at] ?? 0) + power
  }
  return proposals.map((createdValue) => {
    const { scores, votes: count } = counted.get(createdValue.id) ?? { scores: [], votes: 0 }
    const scoresTotal = scores.reduce((sum, one) => sum + one, 0)
    return { ...createdValue, scores, scoresTotal, scoresState: toScoresState(createdValue, seconds), votes: count }
  })
}

/**
 * Most proposals interest a tenth of the voters, few interest most of them. Strong voters vote more often. Most votes are
 * cast early.
 */
function inventVotes(
  electorate: Electorate,
  own: number,
  { id, start, end }: ProposalDraft,
  { type, choices }: WrittenProposal,
): SpaceVote[] {
  const turnout = 0.06 + 0.8 * unit(own, -1) ** 6
  const favour = toFavour(own, choices.length)
  const votes: SpaceVote[] = []
  for (const [rank, elector] of electorate.entries()) {
    if (unit(own, rank) >= Math.max(turnout, 0.6 - 0.02 * rank)) continue
    const created = start + Math.floor((end - start) * unit(own ^ 1, rank) ** 2)
    const picked = pickChoice(favour, unit(own ^ 5, rank))
    votes.push({
      // Unique within the space: the first half is the proposal's, the second the voter's.
      id: `${id.slice(0, 34)}${toHex(rank, 4)}`,
      voter: toSpelling(electorate, rank, own),
      created,
      proposal: id,
      choice: toChoice(type, picked, choices.length),
      power: toPower(elector.power * (0.9 + 0.2 * unit(own ^ 2, rank))),
    })
  }
  return votes
}

/** Shares of the choices: usually one of them has most votes, in one of six proposals the vote is close. */
function toFavour(own: number, count: number): readonly number[] {
  const isClose = unit(own, -3) < 1 / 6
  const [least, most] = count > 4 ? [0.2, 0.4] : isClose ? [0.45, 0.55] : [0.75, 0.97]
  const lead = least + (most - least) * unit(own, -4)
  const leader = count > 4 ? Math.floor(count * unit(own, -5)) : unit(own, -5) < 0.85 ? 0 : 1
  return Array.from({ length: count }, (_, at) => (at === leader ? lead : (1 - lead) / (count - 1)))
}

/** The number of a choice. */
function pickChoice(favour: readonly number[], share: number): number {
  let remaining = share
  for (const [at, one] of favour.entries()) {
    if (remaining < one) return at + 1
    remaining -= one
  }
  return favour.length
}

/** Some addresses are in upper case, to test that the spelling of an account does not matter. */
function toSpelling(electorate: Electorate, rank: number, own: number): string {
  const { address } = electorate[rank % electorate.length] ?? { address: '' }
  return unit(own ^ 4, rank) < 0.5 ? address : `0x${address.slice(2).toUpperCase()}`
}
