import { tokenHolders } from '../../shared/datasets/holders.ts'
import { INTERVAL_SECONDS } from '../../shared/intervals.ts'
import type { Token } from '../../shared/registry/entities.ts'
import { defineJob } from '../job/define-job.ts'
import { toTurnOfRun } from '../job/turn.ts'
import { askEach } from '../providers/ask-each.ts'
import { ethplorer } from '../providers/ethplorer/holders.ts'
import { moralis } from '../providers/moralis/holders.ts'

/**
 * The largest holders of every live token on an EVM chain: two calls a token, so that all 107 in every slot would be
 * 5,136 calls a day. No free plan has so many, and the tokens take turns (providers document, section 18). Moralis' 40,000
 * units a day are 800 calls and, without the parts for trades and history, 10 tokens a slot: each token every 11 hours.
 * Ethplorer's free key has 3,000 calls a week, of which 8 tokens a slot are 2,688: each of its 92 tokens every 12 hours.
 */
export default defineJob({
  name: 'holders',
  cadence: '1h',
  dataset: tokenHolders,
  providers: [moralis, ethplorer],
  entities: tokenHolders.entities,
  slotEntities: 500,
  run: ({ provider, ...run }) => {
    const { entities, peers, slot, signal, log, refuse } = run
    const turn = toTurnOfRun(run, provider.tokensPerSlot, tokenHolders.cadence)
    const isAsked = new Set(turn)
    run.putOff(entities.filter((token) => !isAsked.has(token)))
    // A count stands for the time until the token's next turn.
    const turns = Math.ceil(peers.all.length / provider.tokensPerSlot)
    const seconds = INTERVAL_SECONDS[tokenHolders.cadence] * turns
    if (turns > 1) run.noteStep({ from: slot, to: slot + seconds * 1000 }, seconds)
    const ask = (token: Token) => provider.fetchHolders(token, slot, signal)
    return askEach(turn, ask, { concurrency: provider.concurrency, log, refuse })
  },
})
