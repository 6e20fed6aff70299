import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { parseConfig } from '../../shared/config/config.ts'
import { loadRegistry, type Registry } from '../../shared/registry/registry.ts'
import { createHttpClients } from '../../workers/http/client.ts'
import { compareRegistry } from '../../workers/registry-check/compare.ts'
import { judge, loadExplained } from '../../workers/registry-check/explained.ts'
import { fetchLists } from '../../workers/registry-check/provider-lists.ts'
import { readRecordedLists } from '../../workers/registry-check/recorded-lists.ts'
import { silent } from '../support/silent.ts'
import { createUpstream } from '../upstream/server.ts'
import { toStandInSettings } from '../upstream/settings.ts'

const NOW = Date.parse('2024-05-06T07:05:09Z')
const registry = loadRegistry()

/** The registry with changed facts of one token and one DAO. */
function withFacts(token: Partial<Registry['tokens'][number]>, dao: Partial<Registry['daos'][number]>): Registry {
  return {
    ...registry,
    tokens: registry.tokens.map((one) => (one.symbol === 'UNI' ? { ...one, ...token } : one)),
    daos: registry.daos.map((one) => (one.slug === 'uniswap' ? { ...one, ...dao } : one)),
  }
}

describe('registry check against provider lists', () => {
  let upstream: Awaited<ReturnType<typeof createUpstream>>
  beforeAll(async () => {
    upstream = await createUpstream({ registry, now: () => NOW, dataDir: null, chains: {} })
  })
  afterEach(() => upstream.faults.clear())
  afterAll(() => upstream?.close())

  async function check(own: Registry, settings: Record<string, string> = {}) {
    const config = parseConfig({ ...toStandInSettings(upstream.url), ...settings })
    const http = createHttpClients({ log: silent, backoffMs: 1 })
    const lists = await fetchLists(own, { config, http }, new AbortController().signal)
    return { differences: compareRegistry(own, lists, NOW), lists }
  }

  it('finds no difference for equal facts, and reads every list', async () => {
    const { differences, lists } = await check(registry)
    expect(differences).toEqual([])
    expect(lists.unread).toEqual([])
    expect(lists.coins.map(({ list, byId }) => [list, byId.size > 90])).toEqual([
      ['coingecko', true],
      ['coinmarketcap', true],
    ])
    expect(lists.spaces[0]?.knownSpaces?.size).toBeGreaterThan(80)
  })

  it.each([
    ['an id that is unknown', { cmcId: '999999' }, {}, ['coinmarketcap', 'cmcId', '999999', null]],
    ['another id that is unknown', { coingeckoId: 'nothing' }, {}, ['coingecko', 'coingeckoId', 'nothing', null]],
    ['a protocol that is unknown', {}, { defillama: 'nothing' }, ['defillama', 'defillama', 'nothing', null]],
    ['a space that is unknown', {}, { snapshotSpace: 'no.eth' }, ['snapshot', 'snapshotSpace', 'no.eth', null]],
  ])('finds %s', async (_, token, dao, [list, field, own, listed]) => {
    const { differences } = await check(withFacts(token, dao))
    expect(differences).toEqual([expect.objectContaining({ list, field, ours: own, theirs: listed })])
  })

  it('finds a different name, symbol and contract in each list that has them', async () => {
    const contractAddress = `0x${'1'.repeat(40)}`
    const { differences } = await check(withFacts({ name: 'Other', symbol: 'OTH', contractAddress }, {}))
    for (const list of ['coingecko', 'coinmarketcap']) {
      const fields = differences.filter((one) => one.list === list).map(({ field }) => field)
      expect([list, fields]).toEqual([list, ['name', 'symbol', 'contractAddress']])
    }
  })

  it('finds a token that is live after its end', async () => {
    const ended = { at: '2024-05-01', reason: 'gone', successor: null }
    const { differences } = await check(withFacts({ ended, until: Date.parse(ended.at) }, {}))
    expect(differences).toEqual([expect.objectContaining({ list: 'calendar', theirs: 'ended on 2024-05-01' })])
  })

  it('reports unreadable lists, and whether that is a failure', async () => {
    upstream.faults.set('defillama', { kind: 'status', status: 403 })
    const { differences, lists } = await check(registry, { COINMARKETCAP_API_KEY: '' })
    expect(differences).toEqual([])
    expect(lists.unread).toEqual([
      { list: 'coinmarketcap', reason: 'not asked without COINMARKETCAP_API_KEY', isFailure: false },
      { list: 'defillama', reason: expect.stringContaining('403'), isFailure: true },
    ])
    expect(lists.spaces).toHaveLength(1)
  })
})

it('registry check: an explanation applies only to the explained value', () => {
  const difference = { list: 'a', of: 'b', field: 'c', ours: '1', theirs: '2' }
  const explained = [{ list: 'a', of: 'b', field: 'c', theirs: '2', reason: 'because' }]
  expect(judge([difference, { ...difference, theirs: '3' }], explained).map(({ reason }) => reason)).toEqual([
    'because',
    null,
  ])
})

const dataDir = process.env.UPSTREAM_DATA_DIR || join(import.meta.dirname, '../../../shared/data')
const isAbsent = !existsSync(dataDir)
if (isAbsent) console.log(`the registry is not compared with recorded lists: no folder ${dataDir}`)

it.skipIf(isAbsent)(
  'registry check: recorded lists have only explained differences, and each explanation is used',
  () => {
    const explained = loadExplained()
    const judged = judge(compareRegistry(registry, readRecordedLists(dataDir), NOW), explained)
    expect(judged.filter(({ reason }) => reason === null)).toEqual([])
    expect(judged).toHaveLength(explained.length)
  },
)
