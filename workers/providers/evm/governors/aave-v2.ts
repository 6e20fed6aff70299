import { parseAbi } from 'viem/utils'
import { defineFamily, FOR_AGAINST, toCreated, toVote } from './family.ts'

/** Aave's governance v2. The text of a proposal is on IPFS, and the event has its hash only. */
export const aaveV2 = defineFamily({
  events: parseAbi([
    'event ProposalCreated(uint256 id, address indexed creator, address indexed executor, address[] targets, uint256[] values, string[] signatures, bytes[] calldatas, bool[] withDelegatecalls, uint256 start, uint256 end, address strategy, bytes32 ipfsHash)',
    'event VoteEmitted(uint256 id, address indexed voter, bool support, uint256 weight)',
    'event ProposalCanceled(uint256 id)',
    'event ProposalQueued(uint256 id, uint256 eta, address indexed queuedBy)',
    'event ProposalExecuted(uint256 id, address indexed executedBy)',
  ]),
  choices: FOR_AGAINST,
  toEvent: (event) => {
    switch (event.eventName) {
      case 'ProposalCreated':
        return toCreated({ ...event.args, proposer: event.args.creator, description: '' })
      case 'VoteEmitted':
        return toVote(event.args)
      case 'ProposalCanceled':
        return { kind: 'canceled', id: event.args.id }
      case 'ProposalQueued':
        return { kind: 'queued', id: event.args.id, eta: event.args.eta }
      case 'ProposalExecuted':
        return { kind: 'executed', id: event.args.id }
    }
  },
})
