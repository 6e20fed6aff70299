import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import type { Space, SpaceProposal, SpaceVote } from './world.ts'

const FOLDER = 'governance-holders-ccby-zukowski'

/**
 * The recorded votes and proposals by space. The recording has days only, so that many votes have one time, and no ids
 * of votes: they are made from proposal and voter.
 */
export function readSpaces(dir: string): ReadonlyMap<string, Space> {
  const proposals = readRows(readFileSync(join(dir, FOLDER, 'snapshot_proposals.csv')))
  const votes = readRows(gunzipSync(readFileSync(join(dir, FOLDER, 'snapshot_votes.csv.gz'))))
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

/** The rows of a CSV file with a header; a cell in quotes may hold commas, line breaks and doubled quotes. */
function readRows(bytes: Buffer): Row[] {
  const rows: string[][] = [[]]
  for (const [, quoted, plain, end] of bytes.toString().matchAll(/(?:"((?:[^"]|"")*)"|([^,\r\n]*))(,|\r?\n|$)/g)) {
    rows.at(-1)?.push(quoted?.replaceAll('""', '"') ?? plain ?? '')
    if (end !== ',') rows.push([])
  }
  const [header = [], ...lines] = rows
  const whole = lines.filter(({ length }) => length === header.length)
  return whole.map((cells) => Object.fromEntries(header.map((name, index) => [name, cells[index] ?? ''])))
}
