import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { parse } from 'csv-parse/sync'
import type { Space, SpaceProposal, SpaceVote } from './world.ts'

const FOLDER = 'governance-holders-ccby-zukowski'

/**
 * The recorded votes and proposals by space. The recording has days only, so many votes share a time. Vote ids are not
 * recorded, so they are derived from proposal and voter.
 */
export function readSpaces(dir: string): ReadonlyMap<string, Space> {
  const proposals: Row[] = parse(readFileSync(join(dir, FOLDER, 'snapshot_proposals.csv')), { columns: true })
  const votes: Row[] = parse(gunzipSync(readFileSync(join(dir, FOLDER, 'snapshot_votes.csv.gz'))), { columns: true })
  const symbols = new Map(proposals.map(({ symbol, space_id }) => [symbol, space_id]))
  return new Map(
    [...symbols].map(([symbol = '', id = '']) => {
      const own = proposals.filter((row) => row.symbol === symbol).map(toProposal)
      return [id, { id, name: symbol, proposals: own, votes: votes.filter((row) => row.symbol === symbol).map(toVote) }]
    }),
  )
}

type Row = Readonly<Record<string, string>>

/** The recording has neither choices nor scores by choice. */
function toProposal(row: Row): SpaceProposal {
  const { proposal_id: id = '', title = '', author = '', type = '', start, end } = row
  const [created, scoresTotal, votes, quorum] = [toSeconds(start), row.scores_total, row.votes, row.quorum]
  const results = { scores: [], scoresTotal: Number(scoresTotal), votes: Number(votes), quorum: Number(quorum) }
  return { id, title, author, type, choices: [], created, start: created, end: toSeconds(end), ...results }
}

function toVote({ proposal_id: proposal = '', voter = '', voting_power, choice = '', created }: Row): SpaceVote {
  const id = `0x${createHash('sha256').update(`${proposal} ${voter}`).digest('hex')}`
  return { id, voter, proposal, created: toSeconds(created), choice: toChoice(choice), power: Number(voting_power) }
}

/** The recording has objects and lists in Python's notation. */
export const toChoice = (text: string): unknown => JSON.parse(text.replaceAll("'", '"'))

const toSeconds = (day: string | undefined) => Date.parse(day ?? '') / 1000
