import { parseAbi } from 'viem/utils'
import { COMMON_EVENTS, defineFamily, toCommonEvent, toVote, WITH_ABSTAIN } from './family.ts'

/** Compound's second governor. */
export const bravo = defineFamily({
  events: [
    ...COMMON_EVENTS,
    ...parseAbi([
      'event VoteCast(address indexed voter, uint256 id, uint8 support, uint256 weight, string reason)',
      'event ProposalVetoed(uint256 id)',
    ]),
  ],
  choices: WITH_ABSTAIN,
  toEvent: (event) => {
    if (event.eventName === 'VoteCast') return toVote(event.args)
    // A veto is a permanent cancellation.
    if (event.eventName === 'ProposalVetoed') return { kind: 'canceled', id: event.args.id }
    return toCommonEvent(event)
  },
})
