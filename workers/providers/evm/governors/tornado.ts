import { parseAbi } from 'viem/utils'
import { defineFamily, FOR_AGAINST, toVote } from './family.ts'

/**
 * Tornado Cash's governance (tornadocash/tornado-governance@c312c5f, May 2022). A proposal is a contract that the governor
 * calls by delegatecall, and its times are Unix seconds. A voter may vote again, which replaces the vote before. A vote
 * that turns the result at the end lengthens the vote once by hours; no event states that, so the end is the planned one.
 */
export const tornado = defineFamily({
  events: parseAbi([
    'event ProposalCreated(uint256 indexed id, address indexed proposer, address target, uint256 start, uint256 end, string description)',
    'event Voted(uint256 indexed id, address indexed voter, bool indexed support, uint256 weight)',
    'event ProposalExecuted(uint256 indexed id)',
  ]),
  choices: FOR_AGAINST,
  isReplaced: true,
  toEvent: (event) => {
    switch (event.eventName) {
      case 'ProposalCreated': {
        const { id, proposer, target, start, end, description } = event.args
        const actions = [{ target: target.toLowerCase(), value: 0n, signature: 'executeProposal()', calldata: '0x' }]
        return { kind: 'created', id, proposer: proposer.toLowerCase(), period: { start, end }, description, actions }
      }
      case 'Voted':
        return toVote(event.args)
      case 'ProposalExecuted':
        return { kind: 'executed', id: event.args.id }
    }
  },
})
