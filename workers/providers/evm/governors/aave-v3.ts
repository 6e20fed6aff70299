import { parseAbi } from 'viem/utils'
import { defineFamily, FOR_AGAINST, toVote } from './family.ts'

/**
 * Aave's governance v3. Proposals are on Ethereum, without their text, which is on IPFS. Votes are on the voting machine
 * of the chain that the author chose, which also opens the vote. A vote that its voter sent from Ethereum is forwarded
 * to the machine and counts there. Queued means that the vote was won, and executed that the calls were sent to
 * the payloads controllers of their chains.
 */
export const aaveV3 = defineFamily({
  events: parseAbi([
    'event ProposalCreated(uint256 indexed id, address indexed creator, uint8 indexed accessLevel, bytes32 ipfsHash)',
    'event ProposalQueued(uint256 indexed id, uint128 votesFor, uint128 votesAgainst)',
    'event ProposalExecuted(uint256 indexed id)',
    'event ProposalCanceled(uint256 indexed id)',
    'event ProposalVoteStarted(uint256 indexed id, bytes32 indexed l1BlockHash, uint256 start, uint256 end)',
    'event VoteEmitted(uint256 indexed id, address indexed voter, bool indexed support, uint256 weight)',
  ]),
  choices: FOR_AGAINST,
  toEvent: (event) => {
    switch (event.eventName) {
      case 'ProposalCreated': {
        const { id, creator } = event.args
        return { kind: 'created', id, proposer: creator.toLowerCase(), period: 'later', description: '', actions: [] }
      }
      case 'ProposalQueued':
        return { kind: 'queued', id: event.args.id, eta: undefined }
      case 'ProposalExecuted':
        return { kind: 'executed', id: event.args.id }
      case 'ProposalCanceled':
        return { kind: 'canceled', id: event.args.id }
      case 'ProposalVoteStarted': {
        const { id, start, end } = event.args
        return { kind: 'started', id, start, end }
      }
      case 'VoteEmitted':
        return toVote(event.args)
    }
  },
})
