import { describe, expect, it } from 'vitest'
import { defillama } from '../../workers/providers/defillama/tvl.ts'
import { sendJson } from '../provider-server.ts'
import { readFixture, toTestDao } from '../samples.ts'
import { connectTo } from '../support/connected-provider.ts'
import { toRun } from '../support/run.ts'

const { signal } = new AbortController()
const DAY = 86_400_000
const start = Date.UTC(2022, 1, 1)

describe('defillama', () => {
  it('reads all protocols in one call', async () => {
    const answer = readFixture('defillama/protocols.json')
    const { server, source } = await connectTo(defillama, (_, response) => sendJson(response, answer))
    const rows = await source.fetchTvl([toTestDao(1, 'alfa'), toTestDao(2, 'nobody')], start, signal)
    expect(rows).toEqual([{ dao: 1, observed_at: '2022-02-01T00:00:00.000Z', tvl_usd: 3000.75 }])
    expect(server.requests.map(({ url }) => url.pathname)).toEqual(['/protocols'])
  })

  it('reads history by protocol and rejects unknown ones', async () => {
    const answer = readFixture('defillama/protocol.json')
    const { source, calls } = await connectTo(defillama, (_, response, url) => {
      if (url.pathname === '/protocol/alfa') sendJson(response, answer)
      else response.writeHead(400, { 'content-type': 'text/plain' }).end('Protocol not found')
    })
    const daos = [toTestDao(2, 'nobody'), toTestDao(1, 'alfa')]
    const { run, refused } = toRun()
    const rows = await source.fetchTvlHistory(daos, { from: start, to: start + 2 * DAY, interval: '1d' }, run)
    expect(rows.map((row) => row.tvl_usd)).toEqual([1000.5, 1001.5])
    expect([...refused].map(([key, { code }]) => [key, code])).toEqual([[2, 'provider_unknown']])
    expect(calls.map((call) => call.path)).toEqual(['/protocol/{slug}', '/protocol/{slug}'])
  })

  it('requests the history of a renamed protocol by the slug of its name', async () => {
    const answer = readFixture('defillama/protocol.json')
    const { source, server } = await connectTo(defillama, (_, response) => sendJson(response, answer))
    const renamed = { ...toTestDao(1, 'alfa'), defillamaSlug: 'omega.fi' }
    await source.fetchTvlHistory([renamed], { from: start, to: start + DAY, interval: '1d' }, toRun().run)
    expect(server.requests.map(({ url }) => url.pathname)).toEqual(['/protocol/omega.fi'])
  })

  it.each([
    ['an object', {}],
    ['a list of texts', ['x']],
  ])('rejects %s in place of the protocols', async (_, answer) => {
    const { source } = await connectTo(defillama, (_request, response) => sendJson(response, answer))
    await expect(source.fetchTvl([], start, signal)).rejects.toMatchObject({ code: 'provider_malformed' })
  })
})
