import { parseAbi } from 'viem/utils'
import {
  COMMON_EVENTS,
  defineFamily,
  TIMELOCK_EVENTS,
  toCommonEvent,
  toCreated,
  toTimelock,
  toVote,
  WITH_ABSTAIN,
} from './family.ts'

/**
 * Agora's governor (Optimism, Scroll, Linea), which is OpenZeppelin's with types of proposals and with voting modules. A
 * module gets the proposal as bytes of its own format, so its calls are not known here; a vote for options of a module
 * is a vote for. Newer contracts index ids, proposers and modules.
 */
export const agora = defineFamily({
  events: [
    ...COMMON_EVENTS,
    ...TIMELOCK_EVENTS,
    ...parseAbi([
      'event ProposalCreated(uint256 indexed id, address indexed proposer, address[] targets, uint256[] values, string[] signatures, bytes[] calldatas, uint256 start, uint256 end, string description)',
      'event ProposalCreated(uint256 id, address proposer, address[] targets, uint256[] values, string[] signatures, bytes[] calldatas, uint256 start, uint256 end, string description, uint8 proposalType)',
      'event ProposalCreated(uint256 indexed id, address indexed proposer, address[] targets, uint256[] values, string[] signatures, bytes[] calldatas, uint256 start, uint256 end, string description, uint8 proposalType)',
      'event ProposalCreated(uint256 id, address proposer, address votingModule, bytes proposalData, uint256 start, uint256 end, string description)',
      'event ProposalCreated(uint256 indexed id, address indexed proposer, address indexed votingModule, bytes proposalData, uint256 start, uint256 end, string description)',
      'event ProposalCreated(uint256 id, address proposer, address votingModule, bytes proposalData, uint256 start, uint256 end, string description, uint8 proposalType)',
      'event ProposalCreated(uint256 indexed id, address indexed proposer, address indexed votingModule, bytes proposalData, uint256 start, uint256 end, string description, uint8 proposalType)',
      'event ProposalDeadlineUpdated(uint256 id, uint64 deadline)',
      'event ProposalTypeUpdated(uint256 indexed id, uint8 proposalType)',
      'event VoteCast(address indexed voter, uint256 id, uint8 support, uint256 weight, string reason)',
      'event VoteCastWithParams(address indexed voter, uint256 id, uint8 support, uint256 weight, string reason, bytes params)',
      'event ProposalExtended(uint256 indexed id, uint64 end)',
    ]),
  ],
  choices: WITH_ABSTAIN,
  toEvent: (event) => {
    switch (event.eventName) {
      case 'ProposalCreated':
        if ('targets' in event.args) return toCreated(event.args)
        return toCreated({ ...event.args, targets: [], values: [], signatures: [], calldatas: [] })
      case 'VoteCast':
        return toVote(event.args)
      case 'VoteCastWithParams':
        return toVote(event.args)
      case 'ProposalDeadlineUpdated':
        return { kind: 'extended', id: event.args.id, end: event.args.deadline }
      case 'ProposalExtended':
        return { kind: 'extended', id: event.args.id, end: event.args.end }
      case 'ProposalTypeUpdated':
        // A type decides quorum and threshold, which the events do not have.
        return undefined
      case 'TimelockChange':
        return toTimelock(event.args)
      default:
        return toCommonEvent(event)
    }
  },
})
