import { tokenHolders } from '../../shared/datasets/holders.ts'
import { DataError } from '../../shared/errors.ts'
import { INTERVAL_SECONDS } from '../../shared/intervals.ts'
import type { Token } from '../../shared/registry/entities.ts'
import { defineJob } from '../job/define-job.ts'
import { openSlotAnswers } from '../job/state.ts'
import { ethplorer } from '../providers/ethplorer/holders.ts'
import { moralis } from '../providers/moralis/holders.ts'
import { toTurnOfRun } from '../providers/plan.ts'
import { requestEach } from '../providers/requests.ts'

/**
 * Limit of billed responses per entity. An unusable response may have been truncated on the way, and so may the next.
 * After that, the plan's units are better spent on other tokens.
 */
const MOST_ANSWERS = 3
const NO_USE = new DataError(
  'provider_unconfigured',
  `it was answered ${MOST_ANSWERS} times in this slot, each is billed, and none is stored: it is asked for again when its turn comes`,
)

/**
 * The largest holders of every live token on an EVM chain. Two calls per token would be 5,136 calls a day for all 107
 * tokens in every slot. No free plan allows that, so the tokens take turns (docs/providers.md, section 18). Moralis'
 * 40,000 units a day are 800 calls. Without the shares of trades and history, that is 10 tokens a slot: each token
 * every 11 hours. Ethplorer's free key has 3,000 calls a week, of which 8 tokens a slot use 2,688: each of its 92
 * tokens every 12 hours.
 */
export default defineJob({
  name: 'holders',
  cadence: '1h',
  dataset: tokenHolders,
  providers: [moralis, ethplorer],
  entities: tokenHolders.entities,
  slotEntities: 500,
  run: async ({ provider, ...run }) => {
    const { entities, peers, slot, state, signal, refuse } = run
    const turn = toTurnOfRun(run, provider.tokensPerSlot, tokenHolders.cadence)
    const everybody = { ...run, entities: peers.own, passedOn: [] }
    const expected = toTurnOfRun(everybody, provider.tokensPerSlot, tokenHolders.cadence)
    const requested = new Set(turn)
    run.putOff(entities.filter((token) => !requested.has(token)))
    // A count is valid until the token's next turn.
    const turns = Math.ceil(peers.all.length / provider.tokensPerSlot)
    const seconds = INTERVAL_SECONDS[tokenHolders.cadence] * turns
    if (turns > 1) run.noteStep({ from: slot, to: slot + seconds * 1000 }, seconds)
    const answers = await openSlotAnswers(state, provider.name, run)
    const isOver = (token: Token) => answers.of(token) >= MOST_ANSWERS
    for (const token of turn.filter(isOver)) refuse(token, NO_USE)
    const open = turn.filter((token) => !isOver(token))
    const fetchOne = (token: Token) => answers.count(token, () => provider.fetchHolders(token, slot, signal))
    try {
      return await requestEach(open, fetchOne, { ...run, concurrency: provider.concurrency, expected })
    } finally {
      if (open.length > 0) await answers.save()
    }
  },
})
