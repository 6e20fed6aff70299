import { z } from 'zod'
import { numberIn } from '../record-values.ts'
import { GOVERNOR_COUNTED } from '../registry/schema.ts'
import { isGovernor } from './governance.ts'

const power = numberIn('voting power')

/** How near a proposal is to its quorum. */
export const quorumState = z
  .strictObject({
    quorum: power.nullable().describe('Required voting power, as in `quorum`; null if unknown.'),
    counted: z
      .enum(GOVERNOR_COUNTED)
      .nullable()
      .describe(
        'The votes that count towards it: `for`, `for+abstain`, `all`, or `larger+abstain`: the larger one of for and against, and abstentions. Null if unknown.',
      ),
    power: power.nullable().describe('Voting power of these votes; null if the votes that count are unknown.'),
    reached: z.boolean().nullable().describe('Whether they suffice; null if one of both is unknown.'),
    missing: power
      .nullable()
      .describe('Voting power that is missing; 0 if they suffice, null if one of both is unknown.'),
    live: z.boolean().describe('Whether the quorum changes until the vote ends.'),
  })
  .meta({ id: 'ProposalQuorum', description: 'The quorum of a proposal. With `include=quorum`.' })

/** On Snapshot all votes count towards a quorum, and 0 stands for none. */
const COUNTED = `if(${isGovernor('d.space')}, toString(d.quorum_counts), if(ifNull(d.quorum, 0) > 0, 'all', ''))`

/** The sum of the counted votes, from the powers of the choices: for, against and abstain on governors. */
const toSum = (powers: string, zero: string) => {
  const at = (number: number) => `if(length(${powers}) >= ${number}, ${powers}[${number}], ${zero})`
  return `multiIf(${COUNTED} = 'for', ${at(1)}, ${COUNTED} = 'for+abstain', ${at(1)} + ${at(3)}, ${COUNTED} = 'larger+abstain', greatest(${at(1)}, ${at(2)}) + ${at(3)}, arraySum(${powers}))`
}

const POWER = `if(${COUNTED} = '' OR empty(d.choices), NULL, ${toSum('d.scores', '0')})`

/** On governors the integers are compared, because their nearest numbers may be equal. */
const REACHED = `multiIf(isNull(d.quorum) OR isNull(${POWER}), NULL,
    isNotNull(d.quorum_exact) AND notEmpty(d.scores_exact), ${toSum('d.scores_exact', 'toUInt256(0)')} >= assumeNotNull(d.quorum_exact), ${POWER} >= d.quorum)`

/** SQL of the members of `quorumState`, from the details `d` of a proposal. */
export const QUORUM_VALUES = {
  quorum: 'd.quorum',
  counted: `nullIf(${COUNTED}, '')`,
  power: POWER,
  reached: `toBool(${REACHED})`,
  missing: `if(isNull(d.quorum) OR isNull(${POWER}), NULL, if(${REACHED}, 0, greatest(0, d.quorum - ${POWER})))`,
  live: 'd.is_quorum_live',
} as const
