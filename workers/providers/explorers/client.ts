import { z } from 'zod'
import { DataError } from '../../../shared/errors.ts'
import type { HttpClient } from '../../http/client.ts'
import type { ProviderContext } from '../../job/define-job.ts'
import { checkAnswer } from '../answer.ts'
import { toNextDay } from '../plan-resets.ts'

/** Explorers with the form of Etherscan's API, by the name of their settings. */
export const EXPLORERS = {
  etherscan: { chainParameter: 'chainid', keySetting: 'ETHERSCAN_API_KEY' },
  blockscout: { chainParameter: 'chain_id', keySetting: 'BLOCKSCOUT_API_KEY' },
} as const

export type ExplorerName = keyof typeof EXPLORERS

/** A question to an explorer, without chain and key. */
type Question = Readonly<Record<string, string | number>> & { readonly module: string; readonly action: string }

/** Requests to an explorer (docs/providers.md, section 19). */
export interface Explorer {
  readonly name: ExplorerName
  /** The elements of a list; empty if the explorer has none. @throws DataError for any error, which comes with status 200 */
  list(chainId: number, question: Question, signal: AbortSignal): Promise<readonly unknown[]>
  /** The last block at or before a time in Unix seconds. */
  blockAt(chainId: number, seconds: number, signal: AbortSignal): Promise<number>
}

const answer = z.object({ status: z.coerce.string(), message: z.string().nullish(), result: z.unknown() })

/** A list without elements has the status of an error. */
const NOTHING = /^no .*found/i

/** The API has no codes of errors, only texts. */
const LIMIT_OF_DAY = /daily|per day|credits/i
const LIMIT = /rate limit|max calls|too many|timeout|timed out|temporarily|busy|try again/i
const NOT_IN_PLAN =
  /free api access|full chain coverage|upgrade|not supported|unsupported|missing or unsupported chainid/i

function toError(name: ExplorerName, action: string, says: string): DataError {
  const { keySetting } = EXPLORERS[name]
  const message = `${name} ${action}: ${says.slice(0, 200)}`
  if (LIMIT.test(says) && LIMIT_OF_DAY.test(says))
    return new DataError('provider_exhausted', message, { retryAfterMs: toNextDay(Date.now()) })
  if (LIMIT.test(says)) return new DataError('provider_unavailable', message)
  if (NOT_IN_PLAN.test(says)) return new DataError('provider_unconfigured', `${message} (the plan of ${keySetting})`)
  return new DataError('provider_rejected', `${message} (check ${keySetting})`)
}

export function openExplorer({ config, http }: ProviderContext, name: ExplorerName): Explorer {
  const { apiKey, chains: _, ...settings } = config.providers[name]
  const { chainParameter, keySetting } = EXPLORERS[name]
  const client: HttpClient = http.open({ provider: name, ...settings })
  const request = async (chainId: number, question: Question, signal: AbortSignal) => {
    if (apiKey === undefined) throw new DataError('provider_unconfigured', `${name}: ${keySetting} is not set`)
    const query = { [chainParameter]: chainId, ...question, apikey: apiKey }
    const sent = await client.json({ path: '/api', route: '/api', query, signal })
    return checkAnswer(answer, sent, { provider: name, path: question.action })
  }
  return {
    name,
    async list(chainId, question, signal) {
      const { status, message, result } = await request(chainId, question, signal)
      if (Array.isArray(result) && (status === '1' || (result.length === 0 && NOTHING.test(message ?? ''))))
        return result
      throw toError(name, question.action, typeof result === 'string' ? result : (message ?? 'no result'))
    },
    async blockAt(chainId, seconds, signal) {
      const question = { module: 'block', action: 'getblocknobytime', timestamp: seconds, closest: 'before' }
      const { status, message, result } = await request(chainId, question, signal)
      const block = blockNumber.safeParse(result)
      if (status === '1' && block.success) return block.data
      throw toError(name, question.action, typeof result === 'string' ? result : (message ?? 'no block'))
    },
  }
}

const digits = z
  .string()
  .regex(/^\d{1,15}$/)
  .transform(Number)
/** Etherscan sends a text, Blockscout an object. */
const blockNumber = z.union([digits, z.object({ blockNumber: digits }).transform((one) => one.blockNumber)])
