import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { z } from 'zod'
import { parseConfig } from '../../shared/config/config.ts'
import { createDatabase } from '../../shared/store/store.ts'

/**
 * Processes to compare the API with. `bytes` sends the given bytes with the given headers and nothing else. `express`
 * serves the same tokens in the usual way: a route that queries and calls `res.json`.
 */
const [kind = '', text = ''] = process.argv.slice(2)

function serveBytes(): Server {
  const { headers, body } = z.object({ headers: z.array(z.string()), body: z.string() }).parse(JSON.parse(text))
  const bytes = Buffer.from(body)
  return createServer((_request, response) => {
    response.writeHead(200, headers)
    response.end(bytes)
  })
}

const SQL = `SELECT t.id AS _id, t.name AS name, t.symbol AS symbol, t.contract_address AS contractAddress, t.decimals AS decimal,
  t.dao_id AS dao, t.chain_id AS chain, q.observed_at AS lastUpdated, q.market_cap AS marketCap, q.price AS price,
  q.percent_change_1h AS percentChange1h, q.percent_change_24h AS percentChange24h, q.percent_change_7d AS percentChange7d,
  q.percent_change_30d AS percentChange30d, q.percent_change_60d AS percentChange60d, q.volume_24h AS volume24h,
  q.total_supply AS totalSupply, q.circulating_supply AS circulatingSupply, q.max_supply AS maxSupply
FROM (SELECT * FROM tokens FINAL) AS t INNER JOIN (SELECT * FROM token_quotes FINAL) AS q ON q.token = t.key
WHERE t.live ORDER BY q.market_cap DESC NULLS LAST LIMIT {limit: UInt32}`

function serveExpress(): Server {
  const config = parseConfig(z.record(z.string(), z.string()).parse(JSON.parse(text)))
  const db = createDatabase(config.clickhouse, 'read')
  const app = express()
  app.get('/data/tokens', async (request, response) => {
    const limit = Number(request.query.limit ?? 10)
    response.json(await db.rows({ name: 'peer', sql: SQL, params: { limit }, schema: z.unknown() }))
  })
  return createServer(app)
}

const server = kind === 'express' ? serveExpress() : serveBytes()
server.listen(0, '127.0.0.1', () => {
  console.log(JSON.stringify({ ready: true, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }))
})
process.once('SIGTERM', () => process.exit(0))
