import { parseAbi } from 'viem/utils'
import {
  COMMON_EVENTS,
  defineFamily,
  TIMELOCK_EVENTS,
  toCommonEvent,
  toTimelock,
  toVote,
  WITH_ABSTAIN,
} from './family.ts'

/** OpenZeppelin's governor, with its extensions for late quorums and for fractional votes. */
export const openzeppelin = defineFamily({
  events: [
    ...COMMON_EVENTS,
    ...TIMELOCK_EVENTS,
    ...parseAbi([
      'event VoteCast(address indexed voter, uint256 id, uint8 support, uint256 weight, string reason)',
      'event VoteCastWithParams(address indexed voter, uint256 id, uint8 support, uint256 weight, string reason, bytes params)',
      'event ProposalExtended(uint256 indexed id, uint64 end)',
    ]),
  ],
  choices: WITH_ABSTAIN,
  toEvent: (event) => {
    switch (event.eventName) {
      case 'VoteCast':
      case 'VoteCastWithParams':
        return toVote(event.args)
      case 'ProposalExtended':
        return { kind: 'extended', id: event.args.id, end: event.args.end }
      case 'TimelockChange':
        return toTimelock(event.args)
      default:
        return toCommonEvent(event)
    }
  },
})
