import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { parse } from 'csv-parse/sync'
import type { Space, SpaceProposal, SpaceVote } from './world.ts'

const FOLDER = 'governance-holders-ccby-zukowski'

/**
 * The recorded votes and proposals by space. The recording has days only, so that many votes have one time, and no ids
 * of votes: they are made from proposal and voter.
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

function toProposal({ proposal_id: id = '', title = '', author = '', start, end }: Row): SpaceProposal {
  return { id, title, author, created: toSeconds(start), end: toSeconds(end) }
}

function toVote({ proposal_id: proposal = '', voter = '', voting_power, created }: Row): SpaceVote {
  const id = `0x${createHash('sha256').update(`${proposal} ${voter}`).digest('hex')}`
  return { id, voter, proposal, created: toSeconds(created), power: Number(voting_power) }
}

const toSeconds = (day: string | undefined) => Date.parse(day ?? '') / 1000
