import { z } from 'zod'
import { delegations } from '../../../../shared/datasets/delegations.ts'
import { governance } from '../../../../shared/datasets/governance.ts'
import { governors } from '../../../../shared/datasets/governors.ts'
import { countOrNull, idValue, numberOrNull, timeValue, uint32 } from '../../../../shared/record-values.ts'
import type { Answer } from '../../../formats/formats.ts'
import { type Bloc, countHalf, findBlocs, toEntropies, type Vector } from '../../../governance/blocs.ts'
import { MOST_MEMBERS, toWantedParams, VECTORS_SQL } from '../../../governance/participation.ts'
import { type ProposalRange, rangeParameters, toProposalRange } from '../../../governance/range.ts'
import { answerComputed, EVERYTHING } from '../../../lists/lists.ts'
import { integerParameter } from '../../../parameters/kinds.ts'
import { VALUES_PER_LIST } from '../../../route/cost.ts'
import { defineRoute } from '../../../route/define-route.ts'
import { daoKind } from '../../../route/entities.ts'

const DEFAULT_PROPOSALS = 10
const MOST_PROPOSALS = 1_000
const MOST_BLOCS = 100

const bloc = z
  .strictObject({
    place: uint32.describe('Place by power, from 1 on.'),
    power: z.number().describe('Power of its voters, each with that of its last vote.'),
    powerShare: numberOrNull.describe('Share of the power of all voters as a fraction; null if no power is known.'),
    voters: uint32.describe('Number of its voters.'),
    voterShare: z.number().describe('Share of all voters as a fraction.'),
    members: z
      .array(z.string())
      .describe(
        `Addresses of its voters, at most ${MOST_MEMBERS}, of each group with the same votes those with the most power first.`,
      ),
  })
  .meta({ id: 'VotingBloc', description: 'Voters of a DAO who vote alike.' })

const entropy = (what: string) => numberOrNull.describe(`${what}, in bits; null without any.`)

const blocs = z
  .strictObject({
    dao: idValue.describe('Id of the DAO.'),
    from: timeValue.describe('Start of the range.'),
    to: timeValue.describe('End of the range, exclusive.'),
    proposals: uint32.describe('Proposals that were compared: the last ones of the range whose votes are known.'),
    voters: uint32.describe('Addresses that voted on at least one of them.'),
    blocCount: uint32.describe('Number of blocs.'),
    powerMinEntropy: entropy("Min-entropy of the blocs' shares of the power: -log2 of the largest one"),
    powerShannonEntropy: entropy("Shannon's entropy of the blocs' shares of the power"),
    voterMinEntropy: entropy("Min-entropy of the blocs' shares of the voters"),
    voterShannonEntropy: entropy("Shannon's entropy of the blocs' shares of the voters"),
    singleMinEntropy: entropy('Min-entropy of the power if every voter were a bloc'),
    singleShannonEntropy: entropy("Shannon's entropy of the power if every voter were a bloc"),
    blocsOfHalf: countOrNull.describe('Smallest number of blocs with half of the power; null if no power is known.'),
    holdersOfHalf: countOrNull.describe('Smallest number of voters with half of the power; null if no power is known.'),
    notCompared: uint32.describe(
      'Groups of voters with equal votes that were not compared with others, because there are too many; each is a bloc. They have the least power.',
    ),
    blocs: z.array(bloc).describe(`The blocs with the most power, at most ${MOST_BLOCS}.`),
  })
  .meta({ id: 'VotingBlocs', description: 'Which voters of a DAO vote alike, and how concentrated they are.' })

const stored = z.object({
  positions: z.array(z.int()),
  codes: z.array(z.int()),
  power: z.number(),
  voters: z.int(),
  members: z.array(z.string()),
  powers: z.array(z.number()),
})
type Stored = z.infer<typeof stored>

/** Choices as small numbers, equal for equal choices. */
function toVectors(rows: readonly Stored[], proposals: number): Vector[] {
  const numbers = new Map<number, number>()
  return rows.map(({ positions, codes, power, voters }) => {
    if (positions.length === 0) return { choices: null, power, voters }
    const choices = new Uint32Array(proposals)
    for (const [at, position] of positions.entries()) {
      const code = codes[at] ?? 0
      const number = numbers.get(code) ?? numbers.size + 1
      numbers.set(code, number)
      choices[position - 1] = number
    }
    return { choices, power, voters }
  })
}

function toReport(
  id: string,
  { from, to }: ProposalRange,
  rows: readonly Stored[],
  found: readonly Bloc[],
  proposals: number,
) {
  const all = {
    power: found.reduce((sum, { power }) => sum + power, 0),
    voters: found.reduce((sum, { voters }) => sum + voters, 0),
  }
  const byPower = toEntropies(found.map(({ power }) => power))
  const byVoters = toEntropies(found.map(({ voters }) => voters))
  const powers = rows.flatMap((row) => row.powers)
  const single = toEntropies(powers)
  const listed = found.slice(0, MOST_BLOCS).map(
    ({ vectors, power, voters }, at): z.infer<typeof bloc> => ({
      ...{ place: at + 1, power, powerShare: all.power === 0 ? null : power / all.power },
      ...{ voters, voterShare: voters / all.voters },
      members: vectors.flatMap((vector) => rows[vector]?.members ?? []).slice(0, MOST_MEMBERS),
    }),
  )
  return {
    ...{ dao: id, from: new Date(from).toISOString(), to: new Date(to).toISOString(), proposals, voters: all.voters },
    ...{ blocCount: found.length, powerMinEntropy: byPower.min, powerShannonEntropy: byPower.shannon },
    ...{ voterMinEntropy: byVoters.min, voterShannonEntropy: byVoters.shannon },
    ...{ singleMinEntropy: single.min, singleShannonEntropy: single.shannon },
    ...{ blocsOfHalf: countHalf(found.map(({ power }) => power)), holdersOfHalf: countHalf(powers) },
    ...{ notCompared: rows.filter(({ positions }) => positions.length === 0).length, blocs: listed },
  } satisfies z.infer<typeof blocs>
}

export const governanceBlocsRoute = defineRoute({
  operation: 'getDaoVotingBlocs',
  path: '/data/daos/governance/blocs',
  tag: 'DAOs',
  summary: 'Voters of one DAO who vote alike',
  description:
    'Voting blocs: two voters are linked if their choices differ on at most 34 % of the last proposals of the range, where not to vote is a choice, too; linked voters are one bloc (single linkage). The entropies state how evenly power or voters are distributed over the blocs: 0 if all vote alike. The result by power does not change if a holder moves its tokens to several addresses that vote alike.',
  one: daoKind,
  query: {
    ...rangeParameters,
    proposals: integerParameter(MOST_PROPOSALS)
      .default(DEFAULT_PROPOSALS)
      .meta({
        description: `Number of proposals to compare, the last ones of the range, at most ${MOST_PROPOSALS}.`,
        examples: [DEFAULT_PROPOSALS],
      }),
  },
  record: bloc,
  response: blocs,
  estimateValues: () => VALUES_PER_LIST,
  datasets: [governance, governors, delegations],
  mayHaveNoData: true,
  handle: async (call): Promise<Answer> => {
    const { db, found: dao, query, representation, signal } = call
    const range = await toProposalRange(call)
    const compared = range.proposals
      .filter(({ ends, reason }) => ends !== null && reason === '')
      .slice(-query.proposals)
    const rows = await db.rows({
      name: 'governance-blocs',
      sql: VECTORS_SQL,
      params: { ...range.params, ...toWantedParams(compared) },
      schema: stored,
    })
    const found = await findBlocs(toVectors(rows, compared.length), compared.length, signal)
    const report = toReport(dao.id, range, rows, found, compared.length)
    const head = { asOf: range.readAt, ...(range.expiresAt === undefined ? {} : { expiresAt: range.expiresAt }) }
    if (representation.format === 'json') return { body: Buffer.from(JSON.stringify(report)), ...head }
    return answerComputed(
      call,
      { name: 'governance-blocs', records: report.blocs, ...head },
      { selection: EVERYTHING, sort: [], filters: [] },
    )
  },
})
