import { describe, expect, it } from 'vitest'
import { defillamaTreasury } from '../../workers/providers/defillama/treasury.ts'
import { sendJson } from '../provider-server.ts'
import { readFixture } from '../samples.ts'
import { alfa, connectTreasury, DAY, TODAY } from '../support/treasury-provider.ts'

const { signal } = new AbortController()

describe('defillama', () => {
  const fixture = readFixture('defillama/treasury.json')

  it('sends one request per DAO, for current data and for history', async () => {
    const { server, source } = await connectTreasury(defillamaTreasury, (_, response) => sendJson(response, fixture))
    expect(await source.fetchTreasury(alfa, TODAY, signal)).toMatchObject({ value_usd: 6110, source: 'defillama' })
    const range = { from: TODAY - DAY, to: TODAY + DAY, interval: '1d' } as const
    const rows = await source.fetchHistory(alfa, range, signal)
    expect(rows.map(({ observed_at, value_usd }) => [observed_at, value_usd])).toEqual([
      ['2024-05-05T00:00:00.000Z', 900],
      ['2024-05-06T00:00:00.000Z', 6100],
    ])
    expect(server.requests.map(({ url }) => url.pathname)).toEqual(['/treasury/alfa', '/treasury/alfa'])
  })

  it('requests a renamed protocol by the slug of its name', async () => {
    const { server, source } = await connectTreasury(defillamaTreasury, (_, response) => sendJson(response, fixture))
    await source.fetchTreasury({ ...alfa, defillamaSlug: 'omega' }, TODAY, signal)
    expect(server.requests.map(({ url }) => url.pathname)).toEqual(['/treasury/omega'])
  })

  it.each([400, 404])('reports an unknown slug on %i with a plain-text body', async (status) => {
    const { server, source } = await connectTreasury(defillamaTreasury, (_, response) => {
      response.writeHead(status, { 'content-type': 'text/plain' }).end('Protocol not found')
    })
    const unknown = { code: 'provider_unknown' }
    await expect(source.fetchTreasury(alfa, TODAY, signal)).rejects.toMatchObject(unknown)
    const range = { from: TODAY - DAY, to: TODAY, interval: '1d' } as const
    await expect(source.fetchHistory(alfa, range, signal)).rejects.toMatchObject(unknown)
    expect(server.requests).toHaveLength(2)
  })

  it('reports 500 as unavailable, and an unexpected body as malformed', async () => {
    const down = await connectTreasury(defillamaTreasury, (_, response) => {
      response.writeHead(500, { 'content-type': 'text/plain' }).end('Internal server error')
    })
    await expect(down.source.fetchTreasury(alfa, TODAY, signal)).rejects.toMatchObject({ code: 'provider_unavailable' })
    const second = await connectTreasury(defillamaTreasury, (_, response) => sendJson(response, []))
    await expect(second.source.fetchTreasury(alfa, TODAY, signal)).rejects.toMatchObject({ code: 'provider_malformed' })
  })

  it('reads a response of more than 10 MB, but not over the cap', async () => {
    const tokens = Object.fromEntries(Array.from({ length: 400 }, (_, n) => [`TOKEN-${n}`, n + 0.123456789]))
    const points = Array.from({ length: 700 }, (_, day) => ({ date: (TODAY - (699 - day) * DAY) / 1000, tokens }))
    const body = JSON.stringify({ chainTvls: { Ethereum: { tvl: [], tokens: points, tokensInUsd: points } } })
    expect(body.length).toBeGreaterThan(10_000_000)
    const { source } = await connectTreasury(defillamaTreasury, (_, response) => sendJson(response, body))
    expect((await source.fetchTreasury(alfa, TODAY, signal))?.tokens).toHaveLength(400)
    // One of these may be four times as large as other responses.
    const read = await connectTreasury(defillamaTreasury, (_, response) => sendJson(response, body), {
      PROVIDER_MAX_BYTES: String(Math.ceil(body.length / 4)),
    })
    expect((await read.source.fetchTreasury(alfa, TODAY, signal))?.tokens).toHaveLength(400)
    const small = await connectTreasury(defillamaTreasury, (_, response) => sendJson(response, body), {
      PROVIDER_MAX_BYTES: '1000000',
    })
    await expect(small.source.fetchTreasury(alfa, TODAY, signal)).rejects.toMatchObject({ code: 'provider_malformed' })
  })
})
