import { afterEach, describe, expect, it } from 'vitest'
import governance from '../../workers/jobs/governance.ts'
import { logAt, toGovernorChain } from '../support/governor-chain.ts'
import { BRAVO, type GovernorPipeline, idOf, proposal, startGovernors, voterOf } from '../support/governor-pipeline.ts'
import { encodeOutcome, encodeVote } from '../upstream/governor-logs.ts'
import { ONE } from '../upstream/small-chain.ts'

let pipeline: GovernorPipeline
afterEach(() => pipeline?.close())

describe('proposals and votes of two sources', () => {
  const logs = [
    logAt(40, BRAVO.address, proposal(42n, [50, 800])),
    logAt(60, BRAVO.address, encodeVote(voterOf(1), 42n, 1, 4n * ONE), { logIndex: 1 }),
    logAt(60, BRAVO.address, encodeVote(voterOf(3), 42n, 0, ONE), { logIndex: 2 }),
    logAt(61, BRAVO.address, encodeVote(voterOf(4), 42n, 2, 7n * ONE)),
    logAt(900, BRAVO.address, encodeOutcome('ProposalExecuted', 42n)),
  ]

  it('have a source member only if sources are requested', async () => {
    pipeline = await startGovernors(1_000, toGovernorChain(logs))
    await pipeline.collect(governance)
    await pipeline.collectGovernors()
    const membersOf = async (path: string, more: string) => {
      const [record] = await pipeline.get<object[]>(`${path}?id=${idOf('compound')}&limit=1${more}`)
      return Object.keys(record ?? {})
    }
    const [ofProposal, ofVote] = [await membersOf('/proposals', ''), await membersOf('/votes', '')]
    expect(ofProposal).toEqual(
      '_id dao title author state choices scores scoresTotal votes quorum createdAt startsAt endsAt url'.split(' '),
    )
    expect(ofVote).toEqual('_id proposal voter choice votingPower createdAt'.split(' '))
    for (const source of ['snapshot', 'governor', 'all']) {
      const query = `&source=${source}`
      expect(await membersOf('/proposals', query)).toEqual([
        ...ofProposal,
        ...['source', 'outcome', 'timesEstimated', 'flagged', 'queuedAt', 'executableAt', 'executedAt', 'canceledAt'],
      ])
      expect(await membersOf('/votes', query)).toEqual([...ofVote, 'source'])
    }
    expect(await membersOf('/proposals', '&fields=source,_id')).toEqual(['_id', 'source'])
    expect(await membersOf('/votes', '&fields=voter,source&source=all')).toEqual(['voter', 'source'])
  })

  it('can be filtered by source only if sources are requested', async () => {
    pipeline = await startGovernors(1_000, toGovernorChain(logs))
    await pipeline.collect(governance)
    await pipeline.collectGovernors()
    const find = (path: string, filter: string, more: string, status = 200) =>
      pipeline.get<{ source: string }[]>(
        `${path}?id=${idOf('compound')}${more}&limit=1000&filter=${encodeURIComponent(filter)}`,
        status,
      )
    for (const [path, filter] of [
      ['/proposals', 'source=governor'],
      ['/proposals', 'source!=snapshot'],
      ['/proposals', 'outcome=executed'],
      ['/proposals', 'timesEstimated=true'],
      ['/votes', 'source=governor'],
    ] as const)
      expect(await find(path, filter, '', 400)).toMatchObject({
        ...{ code: 'invalid_parameter', param: 'filter' },
        detail: expect.stringMatching(/^filter asks about \w+, which is told with source only/),
      })
    for (const [path, count] of [
      ['/proposals', 1],
      ['/votes', 3],
    ] as const) {
      const found = await find(path, 'source=governor', '&source=all')
      expect(found.map(({ source }) => source)).toEqual(Array.from({ length: count }, () => 'governor'))
      expect(await find(path, 'source=snapshot', '&source=governor')).toEqual([])
    }
    const [executed] = await pipeline.proposalsOf('compound')
    expect(await find('/proposals', 'outcome=executed', '&source=governor')).toEqual([executed])
    const ofIt = await pipeline.get(`/votes?proposal=${executed?._id}&filter=${encodeURIComponent('source=governor')}`)
    expect(ofIt).toHaveLength(3)
  })
})
