import { parseAbi } from 'viem/utils'
import { defineFamily, FOR_AGAINST, toVote } from './family.ts'

/**
 * Aragon's voting app (Lido), and Curve's fork of it, whose event of a new vote has more members. The vote starts with
 * the event. A voter may vote again, which replaces the vote before. The script of a vote is not in its event.
 */
export const aragon = defineFamily({
  events: parseAbi([
    'event StartVote(uint256 indexed id, address indexed creator, string metadata)',
    'event StartVote(uint256 indexed id, address indexed creator, string metadata, uint256 minBalance, uint256 minTime, uint256 totalSupply, uint256 creatorVotingPower)',
    'event CastVote(uint256 indexed id, address indexed voter, bool support, uint256 weight)',
    'event ExecuteVote(uint256 indexed id)',
  ]),
  choices: FOR_AGAINST,
  isReplaced: true,
  toEvent: (event) => {
    switch (event.eventName) {
      case 'StartVote': {
        const { id, creator, metadata } = event.args
        const about = { description: metadata, actions: [] }
        return { kind: 'created', id, proposer: creator.toLowerCase(), period: 'immediate', ...about }
      }
      case 'CastVote':
        return toVote(event.args)
      case 'ExecuteVote':
        return { kind: 'executed', id: event.args.id }
    }
  },
})
