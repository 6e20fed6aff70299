import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Dao } from '../../shared/registry/entities.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import governance from '../../workers/jobs/governance.ts'
import { runJob } from '../../workers/run/runner.ts'
import { type HubQuery, startHub, toProposal } from '../support/hub.ts'
import { createServedPipeline, type ServedPipeline } from '../support/served-pipeline.ts'
import { jsonReply, type Reply } from '../upstream/exchange.ts'
import type { SpaceProposal } from '../upstream/world.ts'

const HOUR = 3_600_000
const SPACE = 'one.eth'
const START = Date.parse('2024-05-06T07:01:00Z')

/** A proposal whose vote begins in two hours, so that its author may still edit it. */
const toPending = (id: string, body?: string): SpaceProposal =>
  toProposal({ id, title: id, created: now() - 7200, start: now() + 7200, end: now() + 14_400, ...text(body) })
const toClosed = (id: string, body?: string): SpaceProposal =>
  toProposal({ id, title: id, created: now() - 86_400, start: now() - 80_000, end: now() - 40_000, ...text(body) })
const text = (body: string | undefined) => (body === undefined ? {} : { body })

const proposals: SpaceProposal[] = []
let intercept: (query: HubQuery) => Reply | undefined = () => undefined
let hub: Awaited<ReturnType<typeof startHub>>
let pipeline: ServedPipeline

beforeAll(async () => {
  hub = await startHub({ id: SPACE, name: 'Aave', proposals, votes: [] }, (query) => intercept(query))
  pipeline = await createServedPipeline({ now: START, settings: { SNAPSHOT_BASE_URL: hub.baseUrl }, toServed })
})
afterAll(async () => {
  await pipeline?.close()
  await hub?.close()
})

/** A registry with one DAO, which votes in the hub's only space. */
function toServed(registry: Registry): Registry {
  const aave = { ...(registry.daoBySlug.get('aave') as Dao), snapshotSpace: SPACE, formerSnapshotSpaces: [] }
  return { ...registry, daos: [aave], daoById: new Map([[aave.id, aave]]) }
}

/** Collects the slot of this hour. Returns the names of the queries. */
async function collect() {
  const before = hub.queries.length
  const context = { ...pipeline.context, registry: toServed(pipeline.registry) }
  const slot = Math.floor(pipeline.clock.now / HOUR) * HOUR
  await runJob(governance, governance.connect(context), context, { kind: 'slot', slot, again: true })
  pipeline.changeFeed.commit('governance')
  return hub.queries.slice(before).map(({ name }) => name)
}

async function get(query = '') {
  const response = await fetch(`${pipeline.url}/data/daos/governance/proposals?name=aave${query}`)
  expect(response.status).toBe(200)
  return (await response.json()) as { title: string; body?: string | null }[]
}
const readTexts = async () => Object.fromEntries((await get('&include=body')).map(({ title, body }) => [title, body]))
const readStored = () =>
  pipeline.context.db.rows({
    name: 'texts',
    sql: 'SELECT proposal, edited_at, body FROM dao_proposal_texts FINAL ORDER BY proposal',
    schema: z.object({ proposal: z.string(), edited_at: z.string(), body: z.string() }),
  })

beforeEach(async () => {
  intercept = () => undefined
  proposals.splice(0)
  // All proposals are read again.
  pipeline.clock.now += 25 * HOUR
})

describe('texts of proposals on Snapshot', () => {
  it('are on request only, and follow an edit', async () => {
    proposals.push(toPending('0xedited', '# First'), toClosed('0xclosed', 'Closed'))
    expect(await collect()).toEqual(['Proposals', 'Texts', 'Votes'])
    expect(await readTexts()).toEqual({ '0xedited': '# First', '0xclosed': 'Closed' })
    for (const query of ['', '&source=all', '&exact=true'])
      for (const one of await get(query)) expect(one).not.toHaveProperty('body')

    pipeline.clock.now += HOUR
    expect(await collect()).toEqual(['Proposals', 'Votes'])
    expect(await readTexts()).toEqual({ '0xedited': '# First', '0xclosed': 'Closed' })

    edit('0xedited', { body: '# Second', updated: now() })
    pipeline.clock.now += HOUR
    expect(await collect()).toEqual(['Proposals', 'Texts', 'Votes'])
    expect(hub.queries.at(-2)?.variables.ids).toEqual(['0xedited'])
    expect(await readTexts()).toEqual({ '0xedited': '# Second', '0xclosed': 'Closed' })
  })

  it('are not requested again by the daily reading of all proposals', async () => {
    proposals.push(toClosed('0xone', 'One'), toClosed('0xtwo', ''))
    expect(await collect()).toEqual(['Proposals', 'Texts', 'Votes'])
    const stored = await readStored()
    pipeline.clock.now += 25 * HOUR
    expect(await collect()).toEqual(['Proposals', 'Votes'])
    expect(await readStored()).toEqual(stored)
    expect(await readTexts()).toEqual({ '0xone': 'One', '0xtwo': '' })
  })

  it('are unknown until the next reading of a proposal that was stored without one', async () => {
    const one = toClosed('0xbefore', 'Text')
    proposals.push(one)
    await collect()
    await pipeline.context.db.command({ name: 'forget', sql: 'TRUNCATE TABLE dao_proposal_texts', params: {} })
    pipeline.changeFeed.commit('governance')
    expect(await readTexts()).toEqual({ '0xbefore': null })
    pipeline.clock.now += 25 * HOUR
    expect(await collect()).toContain('Texts')
    expect(await readTexts()).toEqual({ '0xbefore': 'Text' })
  })

  it('stay when a worker of an earlier version reads their proposals', async () => {
    proposals.push(toPending('0xrolling', 'Text'))
    await collect()
    const [aave] = toServed(pipeline.registry).daos
    const row = {
      ...{ dao: aave?.key, space: SPACE, kind: 'proposal', proposal: '0xrolling', address: `0x${'a'.repeat(40)}` },
      ...{ at: toTime(proposals[0]?.created), title: 'Newer', collected_at: toTime(now() + 60) },
    }
    await pipeline.context.db.insert({ table: 'governance_in', rows: [row] })
    pipeline.changeFeed.commit('governance')
    expect(await readTexts()).toEqual({ Newer: 'Text' })
  })

  it('are stored unchanged, whatever they contain', async () => {
    const texts = {
      '0xmarkup': '<script>alert(1)</script>\n[x](javascript:alert(1)) <img src=x onerror=alert(1)>\r\n\ttab',
      '0xcontrols': '\u0000\u0001\u202eevil\u2069\u2028\u2029\ufeff\u{1f600}',
      '0xlong': 'ä'.repeat(200_000),
      '0xempty': '',
    }
    for (const [id, body] of Object.entries(texts)) proposals.push(toClosed(id, body))
    await collect()
    expect(await readTexts()).toEqual(texts)
  })

  it('have a replacement character for a lone surrogate, as titles and choices have', async () => {
    const broken = { ...toClosed('0xbroken', 'a\ud800b\udc00'), title: 'T\udfff', choices: ['Y\ud800', 'No'] }
    proposals.push(broken, toClosed('0xwhole', 'Whole'))
    await collect()
    expect(await readTexts()).toEqual({ 'T\ufffd': 'a\ufffdb\ufffd', '0xwhole': 'Whole' })
    expect(await get('&filter=title=T\ufffd')).toMatchObject([{ choices: ['Y\ufffd', 'No'] }])
  })

  it('cost only themselves if they cannot be read', async () => {
    const ids = ['0xa', '0xb', '0xc', '0xd', '0xe']
    proposals.push(...ids.map((id) => toClosed(id, id === '0xc' ? undefined : `Text ${id}`)))
    intercept = ({ name, variables: { ids = [] } }) => {
      if (name !== 'Texts' || !ids.includes('0xb')) return undefined
      return {
        status: 200,
        headers: { 'content-type': 'application/json' },
        body: '{"data":{"proposals":[{"id":"0xb","bo',
      }
    }
    await collect()
    expect(await readTexts()).toEqual({
      '0xa': 'Text 0xa',
      '0xb': null,
      '0xc': null,
      '0xd': 'Text 0xd',
      '0xe': 'Text 0xe',
    })
  })

  it('do not hold up proposals while the hub has none', async () => {
    proposals.push(toPending('0xlate', 'Text'))
    intercept = ({ name }) =>
      name === 'Texts' ? jsonReply({ errors: [{ message: 'request failed' }], data: { proposals: null } }) : undefined
    await collect()
    expect(await readTexts()).toEqual({ '0xlate': null })
    intercept = () => undefined
    pipeline.clock.now += HOUR
    await collect()
    expect(await readTexts()).toEqual({ '0xlate': 'Text' })
  })

  it('are read in requests of at most 50', async () => {
    for (let n = 0; n < 120; n += 1) proposals.push(toClosed(`0x${n}`, `Text ${n}`))
    expect(await collect()).toEqual(['Proposals', 'Texts', 'Texts', 'Texts', 'Votes'])
    expect(Object.keys(await readTexts())).toHaveLength(100)
  })
})

const now = () => Math.floor(pipeline.clock.now / 1000)
const toTime = (at = 0) => new Date(at * 1000).toISOString()
function edit(id: string, changes: Partial<SpaceProposal>): void {
  const at = proposals.findIndex((one) => one.id === id)
  proposals[at] = { ...(proposals[at] as SpaceProposal), ...changes }
}
