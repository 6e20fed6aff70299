import type { Dao } from '../../shared/registry/entities.ts'
import type { BenchDatabase } from './engine.ts'

/** How much of a DAO's governance is stored. */
export interface Sizes {
  readonly votes: number
  readonly voters: number
  readonly proposals: number
  /** Changes of the power of delegates; each voter is a delegate. */
  readonly changes: number
}

/** Votes are spread over this many days. */
const DAYS = 1_460

const toAccount = (number: string, prefix: string) => `concat('0x${prefix}', leftPad(lower(hex(${number})), 38, '0'))`

/** The address of a voter, by its number. */
export const toVoter = (number: number): string => `0xd1${number.toString(16).padStart(38, '0')}`

const at = (share: string) =>
  `fromUnixTimestamp64Milli({until: Int64} - toInt64((1 - ${share}) * {days: UInt32} * 86400) * 1000, 'UTC')`

/**
 * Stores a DAO with votes on a governor: half of the votes on a proposal are of the same voters, the others of any. Voters of
 * one of 50 camps choose alike, apart from one vote in ten.
 */
export async function storeVotes({ db }: BenchDatabase, dao: Dao, sizes: Sizes, until: number): Promise<void> {
  const governor = dao.governors.at(-1)?.space ?? ''
  const params = { dao: dao.key, space: dao.votingToken?.space ?? '', governor, until, days: DAYS, ...sizes }
  const insert = (sql: string) => db.command({ name: 'store-governance', sql, params })
  const each = sizes.votes / sizes.proposals
  const half = each / 2
  await insert(`INSERT INTO delegations_in (dao, space, kind, at, block_number, log_index, tx, delegate, previous, power, decimals, cause)
SELECT {dao: UInt64}, {space: String}, 'power', ${at('number / {changes: UInt32}')}, 12000000 + intDiv(number, 4), number % 4,
  concat('0x', leftPad(lower(hex(number)), 64, '0')), ${toAccount('number % {voters: UInt32}', 'd1')}, 0,
  toUInt256(rand64(1)) * 1000000 / (1 + number % {voters: UInt32}), 18, 'delegation'
FROM numbers({changes: UInt32})`)
  await insert(
    `INSERT INTO delegations_in (dao, space, kind, at) VALUES ({dao: UInt64}, {space: String}, 'reading', fromUnixTimestamp64Milli({until: Int64}, 'UTC'))`,
  )
  for (const { space } of dao.governors)
    await db.command({
      name: 'store-governance',
      sql: `INSERT INTO governors_in (dao, space, kind, proposal, address, at) VALUES ({dao: UInt64}, {own: String}, 'reading', '', '', fromUnixTimestamp64Milli({until: Int64}, 'UTC'))`,
      params: { ...params, own: space },
    })
  const proposal = (number: string) => `concat({governor: String}, '/', toString(${number}))`
  await insert(`INSERT INTO dao_proposals (dao, space, proposal, author, created_at)
SELECT {dao: UInt64}, {governor: String}, ${proposal('number')}, ${toAccount('number', 'd1')}, ${at('number / {proposals: UInt32}')} - INTERVAL 10 DAY
FROM numbers({proposals: UInt32})`)
  await insert(`INSERT INTO dao_proposal_details (dao, space, proposal, title, voting_type, choices, scores, starts_at, ends_at, collected_at)
SELECT {dao: UInt64}, {governor: String}, ${proposal('number')}, 'Proposal', 'basic', ['Against', 'For', 'Abstain'], [1., 2., 0.],
  ${at('number / {proposals: UInt32}')} - INTERVAL 9 DAY AS start, start + INTERVAL 7 DAY, now64(3, 'UTC')
FROM numbers({proposals: UInt32})`)
  await insert(`INSERT INTO dao_cast_votes (dao, created_at, proposal, voter, space, choice, voting_power, collected_at)
SELECT {dao: UInt64}, ${at(`about / {proposals: UInt32}`)} - INTERVAL 8 DAY + toIntervalSecond(number % 400000), ${proposal('about')}, ${toAccount('who', 'd1')}, {governor: String},
  toString(1 + if(cityHash64(number, 'own') % 10 = 0, cityHash64(number, 'choice'), cityHash64(who % 50, about)) % 3), 1000000 / (1 + who), now64(3, 'UTC')
FROM
(
  SELECT number, intDiv(number, ${each}) AS about,
    if(number % ${each} < ${half}, number % ${each}, ${half} + cityHash64(number) % ({voters: UInt32} - ${half})) AS who
  FROM numbers({votes: UInt32})
)`)
  for (const table of ['delegate_powers', 'delegate_powers_latest', 'dao_cast_votes'])
    await db.command({ name: 'merge', sql: `OPTIMIZE TABLE ${table} FINAL` })
}
