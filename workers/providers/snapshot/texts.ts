import { z } from 'zod'
import { DataError } from '../../../shared/errors.ts'
import type { Database } from '../../../shared/store/store.ts'
import type { Allowance } from '../../job/state.ts'
import type { Space } from '../contracts/governance.ts'
import type { Elements } from './client.ts'
import { type Proposal, type ProposalText, TEXTS_PER_REQUEST, toEdited } from './queries.ts'

const edits = z.object({ proposal: z.string(), edited: z.int() })

/** The texts read so far, and one reason per text or request that could not be read. */
interface Texts {
  readonly items: ProposalText[]
  readonly unreadable: string[]
  /** Reads the missing texts among these proposals. */
  readFor(proposals: readonly (Proposal | undefined)[]): Promise<void>
}

/**
 * Reads the text of each proposal of a space whose text is not stored, or was edited since. A reading without new or
 * edited proposals therefore needs no request. An unreadable text costs only itself: it is requested again when its
 * proposal is read again.
 */
export function openTexts(options: {
  readonly db: Database
  readonly place: Space
  readonly fetchTexts: (ids: readonly string[]) => Promise<Elements<ProposalText>>
  /** Requests are counted, but never refused: the texts belong to proposals that are already read. */
  readonly allowance: Pick<Allowance, 'take'>
}): Texts {
  const { db, place, fetchTexts, allowance } = options
  const items: ProposalText[] = []
  const unreadable: string[] = []
  let known: Map<string, number> | undefined
  let isFailing = false

  const request = async (ids: readonly string[]): Promise<void> => {
    if (isFailing) return
    allowance.take()
    try {
      const { elements, reasons } = await fetchTexts(ids)
      const found = elements.filter((one) => one !== undefined)
      for (const one of found) known?.set(one.id, toEdited(one))
      items.push(...found)
      unreadable.push(...reasons)
    } catch (error) {
      if (!(error instanceof DataError)) throw error
      // One text may be the cause, for example if the answer is larger than the limit.
      if (error.code === 'provider_malformed' && ids.length > 1) {
        const half = Math.ceil(ids.length / 2)
        await request(ids.slice(0, half))
        return request(ids.slice(half))
      }
      isFailing = error.code !== 'provider_malformed'
      unreadable.push(`texts: ${error.message}`)
    }
  }

  return {
    items,
    unreadable,
    async readFor(proposals) {
      known ??= await readEdits(db, place)
      const missing = proposals.flatMap((one) => (one && known?.get(one.id) !== toEdited(one) ? one.id : []))
      for (let at = 0; at < missing.length; at += TEXTS_PER_REQUEST) {
        await request(missing.slice(at, at + TEXTS_PER_REQUEST))
      }
    },
  }
}

/** The time of the last edit of each stored text, in Unix seconds. */
async function readEdits(db: Database, { dao, space }: Space): Promise<Map<string, number>> {
  const rows = await db.rows({
    name: 'proposal-texts',
    sql: `SELECT proposal, toUnixTimestamp(edited_at) AS edited FROM dao_proposal_texts FINAL
WHERE dao = {dao: UInt64} AND space = {space: String}`,
    params: { dao, space },
    schema: edits,
  })
  return new Map(rows.map(({ proposal, edited }) => [proposal, edited]))
}
