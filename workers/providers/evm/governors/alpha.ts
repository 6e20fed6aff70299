import { parseAbi } from 'viem/utils'
import { COMMON_EVENTS, defineFamily, FOR_AGAINST, toCommonEvent, toVote } from './family.ts'

/** Compound's first governor: support is a bool, so there is no abstain. */
export const alpha = defineFamily({
  events: [...COMMON_EVENTS, ...parseAbi(['event VoteCast(address voter, uint256 id, bool support, uint256 weight)'])],
  choices: FOR_AGAINST,
  toEvent: (event) => (event.eventName === 'VoteCast' ? toVote(event.args) : toCommonEvent(event)),
})
