import { parseAbi } from 'viem/utils'
import { COMMON_EVENTS, defineFamily, toActions, toCommonEvent, toVote, WITH_ABSTAIN } from './family.ts'

/**
 * Nouns: Compound's second governor, with a veto, texts that authors may edit before the vote, and an objection period,
 * which lengthens the vote if it turns at its end. A vote is an NFT.
 */
export const nouns = defineFamily({
  events: [
    ...COMMON_EVENTS,
    ...parseAbi([
      'event VoteCast(address indexed voter, uint256 id, uint8 support, uint256 weight, string reason)',
      'event ProposalVetoed(uint256 id)',
      'event ProposalObjectionPeriodSet(uint256 indexed id, uint256 end)',
      'event ProposalDescriptionUpdated(uint256 indexed id, address indexed proposer, string description, string updateMessage)',
      'event ProposalTransactionsUpdated(uint256 indexed id, address indexed proposer, address[] targets, uint256[] values, string[] signatures, bytes[] calldatas, string updateMessage)',
      'event ProposalUpdated(uint256 indexed id, address indexed proposer, address[] targets, uint256[] values, string[] signatures, bytes[] calldatas, string description, string updateMessage)',
    ]),
  ],
  choices: WITH_ABSTAIN,
  toEvent: (event) => {
    switch (event.eventName) {
      case 'VoteCast':
        return toVote(event.args)
      case 'ProposalVetoed':
        return { kind: 'canceled', id: event.args.id }
      case 'ProposalObjectionPeriodSet':
        return { kind: 'extended', id: event.args.id, end: event.args.end }
      case 'ProposalDescriptionUpdated':
        return { kind: 'updated', id: event.args.id, description: event.args.description, actions: undefined }
      case 'ProposalTransactionsUpdated':
        return { kind: 'updated', id: event.args.id, description: undefined, actions: toActions(event.args) }
      case 'ProposalUpdated': {
        const { id, description } = event.args
        return { kind: 'updated', id, description, actions: toActions(event.args) }
      }
      default:
        return toCommonEvent(event)
    }
  },
})
