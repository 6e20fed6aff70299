import { describe, expect, it, onTestFinished } from 'vitest'
import { parseConfig } from '../../shared/config/config.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { Range } from '../../workers/job/define-job.ts'
import prices from '../../workers/jobs/prices.ts'
import tvl from '../../workers/jobs/tvl.ts'
import { createObservedClients, sendJson, startProviderServer } from '../provider-server.ts'
import { readFixture, toTestDao, toTestToken } from '../samples.ts'
import { noDatabase } from '../support/no-database.ts'
import { toRun } from '../support/run.ts'
import { silent } from '../support/silent.ts'

const DAY = 86_400_000
const start = Date.UTC(2022, 1, 1)

describe('price and TVL jobs', () => {
  const live = toTestToken(1, { cmcId: '7278', coingeckoId: 'alfa-coin' })
  const unpriced = { ...toTestToken(2, { cmcId: '9999' }), livePrice: false }
  const dead = { ...toTestDao(2, 'beta'), live: false }
  const registry = { tokens: [live, unpriced], daos: [toTestDao(1, 'alfa'), dead] } as unknown as Registry

  it('collect live entities only', () => {
    expect(prices.entities(registry).map(({ key }) => key)).toEqual([1])
    expect(tvl.entities(registry).map(({ key }) => key)).toEqual([1])
  })

  it('request current data or a range', async () => {
    const server = await startProviderServer((_, response, url) => {
      const name = url.pathname.endsWith('/historical') ? 'historical' : 'latest-v3'
      sendJson(response, readFixture(`coinmarketcap/${name}.json`))
    })
    onTestFinished(server.close)
    const config = parseConfig({ COINMARKETCAP_BASE_URL: server.baseUrl, COINMARKETCAP_API_KEY: 'secret' })
    const collectors = prices.connect({ config, http: createObservedClients().http, db: noDatabase, log: silent })
    expect(collectors.map(({ provider }) => provider)).toEqual(['coinmarketcap', 'coingecko', 'defillama-coins'])
    expect(collectors.map(({ covers }) => covers(unpriced))).toEqual([true, false, true])
    const { run } = toRun({ entities: [live], slot: start })
    expect(await collectors[0]?.collect({ ...run, range: undefined })).toMatchObject([{ is_latest: true }])
    const range: Range = { from: start, to: start + DAY, interval: '1d' }
    expect(await collectors[0]?.collect({ ...run, range })).toMatchObject([{ is_latest: false }])
  })
})
