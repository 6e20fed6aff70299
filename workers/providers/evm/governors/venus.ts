import { parseAbi } from 'viem/utils'
import { COMMON_EVENTS, defineFamily, toCommonEvent, toCreated, toVote, WITH_ABSTAIN } from './family.ts'

/**
 * Venus: Compound's second governor, whose proposals have a type (normal, fast track or critical). Proposals from before
 * have none.
 */
export const venus = defineFamily({
  events: [
    ...COMMON_EVENTS,
    ...parseAbi([
      'event ProposalCreated(uint256 id, address proposer, address[] targets, uint256[] values, string[] signatures, bytes[] calldatas, uint256 start, uint256 end, string description, uint8 proposalType)',
      'event VoteCast(address indexed voter, uint256 id, uint8 support, uint256 weight, string reason)',
    ]),
  ],
  choices: WITH_ABSTAIN,
  toEvent: (event) => {
    if (event.eventName === 'ProposalCreated') return toCreated(event.args)
    if (event.eventName === 'VoteCast') return toVote(event.args)
    return toCommonEvent(event)
  },
})
