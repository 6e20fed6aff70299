import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { z } from 'zod'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { createDatabase, type Database } from '../../shared/store/store.ts'
import { createTestConfig } from '../support/database.ts'
import { type Demo, startDemo } from '../support/demo.ts'

/** The simulated governors of the demo emit only events that a real chain could have. */
let demo: Demo
let db: Database
beforeAll(async () => {
  demo = await startDemo()
  db = createDatabase(createTestConfig({ CLICKHOUSE_DATABASE: inject('stores').demo }).clickhouse, 'read')
})
afterAll(async () => {
  await demo?.close()
  await db?.close()
})

interface Proposal {
  url: string | null
  createdAt: string
  endsAt: string
  scores: [number, number, number?]
  queuedAt: string | null
  executableAt: string | null
  executedAt: string | null
  quorumState: { quorum: number | null; reached: boolean | null }
}

async function get<T>(path: string): Promise<T> {
  const response = await fetch(`${demo.url}/data/daos/governance${path}`)
  expect(response.status, path).toBe(200)
  return (await response.json()) as T
}

const counts = z.object({ checked: z.number(), above: z.number() })

describe('governors of the demo', () => {
  it('execute proposals with a majority and the quorum, after the end of the vote', async () => {
    const all = await get<Proposal[]>('/proposals?source=governor&endsBefore=2100-01-01&include=quorum&limit=1000')
    const closed = all.filter(({ endsAt }) => Date.parse(endsAt) < Date.parse('2026-05-01'))
    const accepted = closed.filter(({ queuedAt, executedAt }) => queuedAt !== null || executedAt !== null)
    for (const { url, createdAt, endsAt, scores, queuedAt, executableAt, executedAt, quorumState } of accepted) {
      expect(scores[0], `${url}`).toBeGreaterThan(scores[1])
      expect(quorumState.reached, `${url}`).not.toBe(false)
      for (const time of [queuedAt, executedAt]) if (time !== null) expect(time > endsAt, `${url}`).toBe(true)
      if (executableAt !== null) expect(executableAt > createdAt, `${url}`).toBe(true)
    }
    // Both outcomes occur, for this reason too. Quorums of old proposals are read later.
    expect(accepted.filter(({ quorumState }) => quorumState.reached).length).toBeGreaterThan(50)
    expect(closed.filter(({ scores, quorumState }) => !quorumState.reached && scores[0] > scores[1])).not.toEqual([])
  })

  it('count votes with the power that is delegated to the voter at the start, and need less than all power', async () => {
    const powers = `
SELECT d.space AS space, d.proposal AS proposal, d.starts_at AS starts_at, argMax(c.power, (c.block_number, c.log_index)) AS power, c.delegate AS delegate
FROM (SELECT * FROM dao_proposal_details FINAL WHERE space LIKE 'eip155:%') AS d
INNER JOIN (SELECT * FROM delegate_powers FINAL) AS c ON c.dao = d.dao
WHERE c.at <= d.starts_at
GROUP BY space, proposal, starts_at, delegate`
    const [votes] = await db.rows({
      name: 'votes-above-power',
      sql: `
SELECT count() AS checked, countIf(v.power_exact > ifNull(p.power, 0)) AS above
FROM (SELECT * FROM dao_cast_votes FINAL WHERE space LIKE 'eip155:%' AND dao IN (SELECT dao FROM delegate_powers)) AS v
LEFT JOIN (${powers}) AS p ON p.space = v.space AND p.proposal = v.proposal AND p.delegate = v.voter`,
      schema: counts,
    })
    expect(votes).toEqual({ checked: expect.any(Number), above: 0 })
    expect(votes?.checked).toBeGreaterThan(1_000)
    const [quorums] = await db.rows({
      name: 'quorums-above-power',
      sql: `
SELECT count() AS checked, countIf(d.quorum_exact > p.power) AS above
FROM (SELECT * FROM dao_proposal_details FINAL WHERE isNotNull(quorum_exact)) AS d
INNER JOIN (SELECT space, proposal, sum(power) AS power FROM (${powers}) GROUP BY space, proposal) AS p
  ON p.space = d.space AND p.proposal = d.proposal`,
      schema: counts,
    })
    expect(quorums).toEqual({ checked: expect.any(Number), above: 0 })
    expect(quorums?.checked).toBeGreaterThan(50)
  })

  it('have voters that cast at most their power', async () => {
    const daos = loadRegistry().daos.filter(({ votingToken }) => votingToken?.chain === 'ethereum')
    const shares: number[] = []
    for (const { id } of daos) {
      const response = await fetch(
        `${demo.url}/data/daos/governance/records?id=${id}&source=governor&start=2025-06-01&end=2026-05-01`,
      )
      if (response.status === 404) continue
      expect(response.status, id).toBe(200)
      const records = (await response.json()) as { participationByPower: number | null }[]
      shares.push(...records.flatMap(({ participationByPower: share }) => (share === null ? [] : [share])))
    }
    expect(shares.filter((share) => share > 0.5).length).toBeGreaterThan(10)
    // Both sums are of floating-point numbers.
    expect(Math.max(...shares)).toBeLessThanOrEqual(1 + 1e-9)
  })
})
