import { afterEach, describe, expect, it } from 'vitest'
import { createHttpClients } from '../../workers/http/client.ts'
import { createJsonRpc } from '../../workers/providers/evm/rpc/json-rpc.ts'
import { startProviderServer } from '../provider-server.ts'
import { silent } from '../support/silent.ts'

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

/** What a call comes to whose node answers so, where 400 and 413 may be refusals. */
async function call(status: number, body: string, type = 'application/json') {
  const server = await startProviderServer((_, response) => {
    response.writeHead(status, { 'content-type': type }).end(body)
  })
  closers.push(server.close)
  const settings = { baseUrl: server.baseUrl, timeoutMs: 5_000, maxBytes: 10_000, requestsPerMinute: 60_000 }
  const client = createHttpClients({ log: silent }).open({ provider: 'node', ...settings })
  const signal = new AbortController().signal
  return createJsonRpc('node', client, 10).call({ method: 'eth_getLogs', params: [] }, signal, { answers: [400, 413] })
}

describe('a call whose refusal may come with an error status', () => {
  const refusal = { error: { code: -32602, message: 'range too wide' } }

  it.each([200, 400])('has the node’s own error with status %i', async (status) => {
    expect(await call(status, JSON.stringify({ jsonrpc: '2.0', id: 0, ...refusal }))).toMatchObject(refusal)
  })

  it.each([
    ['a page', '<html>too large</html>', 'text/html'],
    ['JSON of a gateway', '{"message":"too large"}', 'application/json'],
  ])('is refused by the status where it comes with %s', async (_, body, type) => {
    expect(await call(413, body, type)).toMatchObject({ error: { code: 413 } })
  })

  it('is no refusal where a success has another shape', async () => {
    await expect(call(200, '{"status":"maintenance"}')).rejects.toMatchObject({ code: 'provider_malformed' })
  })
})
